"use strict";
// The report of a release: one page state (region, compared region), drawn anew on every change.
const $ = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 2 });
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const element = (tag, attributes = {}, ...children) => {
  const node = tag === "svg" || attributes.svg
    ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (name !== "svg" && value !== null) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const shape = (tag, attributes, ...children) => element(tag, { ...attributes, svg: true }, ...children);

async function unpack() {
  const bytes = Uint8Array.from(atob($("data").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function start(data) {
  const { labels, parent, runs } = data.regions;
  const children = labels.map(() => []);
  parent.forEach((p, r) => { if (p >= 0) children[p].push(r); });
  const level = parent.map(() => 0);
  parent.forEach((p, r) => { if (p >= 0) level[r] = level[p] + 1; });
  const path = (r) => (r < 0 ? [] : [...path(parent[r]), r]);
  const name = (r) => path(r).map((x) => labels[x]).join(" / ");
  const plainNames = labels.map((label) => label.toLowerCase());
  const sizes = (r) => { const out = []; for (let i = 0; i < runs[r].length; i += 2) out.push([runs[r][i], runs[r][i + 1]]); return out; };
  const groups = runs.map((run) => { let total = 0; for (let i = 1; i < run.length; i += 2) total += run[i]; return total; });
  const state = { region: 0, other: -1, log: false, chosen: 0, listed: [] };

  function facts(r) {
    const table = sizes(r);
    const people = table.reduce((sum, [size, count]) => sum + size * count, 0);
    const quantile = (q) => { let seen = 0; for (const [size, count] of table) { seen += count; if (seen >= q * groups[r]) return size; } return 0; };
    const rows = [[data.words.groups, number(groups[r])], [data.words.total, number(people)]];
    if (groups[r]) {
      rows.push(["mean", number(people / groups[r])], ["median", number(quantile(0.5))], ["largest", number(table[table.length - 1][0])]);
    }
    if (data.regions.emd) rows.push(["true error (EMD)", number(data.regions.emd[r])]);
    return rows;
  }

  function bars(r, other) {
    const most = 30, mine = new Map(sizes(r)), theirs = other >= 0 ? new Map(sizes(other)) : null;
    const all = [...new Set([...mine.keys(), ...(theirs ? theirs.keys() : [])])].sort((a, b) => a - b);
    const shown = all.slice(0, most);
    const total = theirs ? groups[r] || 1 : 1, totalOther = theirs ? groups[other] || 1 : 1;
    const scale = theirs ? 100 : 1;
    const bounds = new Map((data.regions.bounds ? data.regions.bounds[r] : []).map(([s, low, high]) => [s, [low, high]]));
    const value = (map, size, sum) => ((map.get(size) || 0) / sum) * scale;
    let top = 0;
    for (const s of shown) top = Math.max(top, value(mine, s, total), theirs ? value(theirs, s, totalOther) : 0, bounds.has(s) && !theirs ? bounds.get(s)[1] : 0);
    const W = 760, H = 260, left = 64, bottom = 34, step = (W - left) / Math.max(shown.length, 1);
    const y = (v) => H - bottom - (H - bottom - 12) * (state.log ? Math.log1p(v) / Math.log1p(top || 1) : v / (top || 1));
    const svg = element("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${data.words.groups} by ${data.words.size} in ${name(r)}` });
    for (const tick of ticks(top)) svg.append(shape("line", { x1: left, x2: W, y1: y(tick), y2: y(tick), class: "axis" }),
      shape("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, number(tick) + (theirs ? " %" : "")));
    shown.forEach((s, i) => {
      const x = left + i * step, half = theirs ? step * 0.4 : step * 0.8;
      const put = (v, offset, kind) => svg.append(shape("rect", { x: x + step * 0.1 + offset, y: y(v), width: half, height: Math.max(0, H - bottom - y(v)), class: kind },
        shape("title", {}, `${data.words.size} ${data.words.bin ? data.words.bin[s] : s}: ${number(v)}${theirs ? " %" : ""}`)));
      put(value(mine, s, total), 0, "bar");
      if (theirs) put(value(theirs, s, totalOther), half, "bar other");
      else if (bounds.has(s)) { const [low, high] = bounds.get(s), middle = x + step / 2;
        svg.append(shape("line", { x1: middle, x2: middle, y1: y(low), y2: y(high), class: "whisker" })); }
      if (i % Math.ceil(shown.length / 16) === 0) svg.append(shape("text", { x: x + step / 2, y: H - bottom + 16, "text-anchor": "middle" }, data.words.bin ? data.words.bin[s] : number(s)));
    });
    const note = all.length > most ? `the ${most} smallest of ${number(all.length)} ${data.words.size}s` : data.words.size;
    svg.append(shape("text", { x: W, y: H - 4, "text-anchor": "end" }, note));
    return svg;
  }

  function ticks(top) {
    if (!top) return [0];
    const raw = top / 4, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw);
    const out = [];
    for (let tick = 0; tick <= top * 1.001; tick += step) out.push(Number(tick.toPrecision(12)));
    return out;
  }

  function curve(r, other) {
    const W = 760, H = 240, left = 64, bottom = 34;
    const points = (x) => { let seen = 0; return sizes(x).map(([s, c]) => { seen += c; return [s, (100 * seen) / (groups[x] || 1)]; }); };
    const lines = [points(r), ...(other >= 0 ? [points(other)] : [])];
    const most = Math.max(1, ...lines.flat().map(([s]) => s));
    const x = (s) => left + ((W - left - 8) * Math.log1p(s)) / Math.log1p(most), y = (v) => H - bottom - ((H - bottom - 12) * v) / 100;
    const svg = element("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Cumulative share in ${name(r)}` });
    for (const tick of [0, 25, 50, 75, 100]) svg.append(shape("line", { x1: left, x2: W, y1: y(tick), y2: y(tick), class: "axis" }),
      shape("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, `${tick} %`));
    for (const tick of [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000].filter((t) => t <= most))
      svg.append(shape("text", { x: x(tick), y: H - bottom + 16, "text-anchor": "middle" }, data.words.bin ? "" : number(tick)));
    lines.forEach((line, i) => {
      let d = `M${x(0)},${y(0)}`, last = 0;
      for (const [s, v] of line) { d += ` L${x(s)},${y(last)} L${x(s)},${y(v)}`; last = v; }
      svg.append(shape("path", { d, class: i ? "line other" : "line" }));
    });
    svg.append(shape("text", { x: W, y: H - 4, "text-anchor": "end" }, `${data.words.size}, logarithmic`));
    return svg;
  }

  function table(r) {
    const bounds = new Map((data.regions.bounds ? data.regions.bounds[r] : []).map(([s, low, high]) => [s, [low, high]]));
    const head = [data.words.size, data.words.groups, ...(data.regions.bounds ? ["low", "high"] : [])];
    const body = sizes(r).slice(0, 2000).map(([s, c]) => element("tr", {}, ...[data.words.bin ? data.words.bin[s] : number(s), number(c),
      ...(data.regions.bounds ? (bounds.get(s) || ["", ""]).map((v) => (v === "" ? "" : number(v))) : [])].map((v) => element("td", {}, v))));
    return element("table", {}, element("thead", {}, element("tr", {}, ...head.map((h) => element("th", {}, h)))), element("tbody", {}, ...body));
  }

  function list(regions) {
    state.listed = regions;
    state.chosen = Math.min(state.chosen, Math.max(regions.length - 1, 0));
    const rows = regions.slice(0, 500).map((r, i) => {
      const row = element("li", { role: "option", "aria-selected": String(i === state.chosen), "data-region": r },
        element("span", {}, $("search").value ? name(r) : labels[r]), element("span", {}, number(groups[r])));
      row.addEventListener("click", () => go(r));
      return row;
    });
    if (regions.length > 500) rows.push(element("li", { "aria-disabled": "true" }, element("span", {}, `… ${number(regions.length - 500)} more: search`), element("span", {})));
    $("list").replaceChildren(...rows);
  }

  function found(text) {
    const wanted = text.toLowerCase(), out = [];
    for (let r = 0; r < labels.length && out.length < 500; r++) if (plainNames[r].includes(wanted)) out.push(r);
    return out.sort((a, b) => (plainNames[b] === wanted) - (plainNames[a] === wanted) || level[a] - level[b]);
  }

  function refreshList() { list($("search").value ? found($("search").value) : children[state.region]); }

  function draw() {
    const r = state.region;
    $("crumbs").replaceChildren(...path(r).map((x) => {
      const button = element("button", { type: "button" }, labels[x]);
      button.addEventListener("click", () => go(x));
      return element("li", {}, button);
    }));
    const versus = state.other >= 0 ? `: ${labels[r]} beside ${labels[state.other]}, in percent` : "";
    $("region").textContent = name(r) + (state.other >= 0 ? ` compared with ${name(state.other)}` : "");
    $("facts").replaceChildren(...facts(r).map(([k, v]) => element("div", {}, element("dt", {}, k), element("dd", {}, v))));
    $("by-size").textContent = capital(`${data.words.groups} by ${data.words.size}${versus}`);
    $("bars").replaceChildren(bars(r, state.other));
    $("curve-title").textContent = `Share of ${data.words.groups} up to each ${data.words.size}`;
    $("curve").replaceChildren(curve(r, state.other));
    $("largest-title").textContent = data.words.largest;
    const top = [];
    for (const [s, c] of sizes(r).reverse()) { if (top.length >= 10) break; top.push(c > 1 ? `${number(s)} (${number(c)} times)` : number(s)); }
    $("largest").textContent = data.words.bin ? "" : top.join(", ") || "none";
    $("table").replaceChildren(table(r));
    $("clear").hidden = state.other < 0;
    document.title = `${labels[r]} – ${data.title}`;
  }

  function go(r) {
    state.region = r; state.chosen = 0; $("search").value = "";
    history.replaceState(null, "", "#" + encodeURIComponent(path(r).map((x) => labels[x]).join("/")));
    refreshList(); draw();
  }

  function about() {
    $("statement").textContent = data.statement;
    if (data.watermark) { $("watermark").hidden = false; $("watermark").textContent = data.watermark; }
    $("budget").replaceChildren(...data.budget.map((part) => element("div", { class: "share", title: part.detail },
      element("span", {}, part.name), element("div", { style: `width:${100 * part.share}%` }), element("span", {}, `${number(100 * part.share)} %`))));
    $("checks").replaceChildren(...data.checks.map((check) => element("li", { class: check.passed ? "ok" : "failed" },
      `${check.passed ? "✓" : "✗"} ${check.name}${check.detail ? ": " + check.detail : ""}`)));
    $("public").replaceChildren(...data.public.map((text) => element("li", {}, text)));
    $("use").replaceChildren(...data.use.map((text) => element("li", {}, text)));
    $("made").textContent = data.made;
    if (labels.length === 1) document.querySelector("nav").hidden = true;
  }

  function move(by) {
    state.chosen = Math.max(0, Math.min(state.listed.length - 1, state.chosen + by));
    const rows = [...$("list").children];
    rows.forEach((row, i) => row.setAttribute("aria-selected", String(i === state.chosen)));
    rows[state.chosen]?.scrollIntoView({ block: "nearest" });
  }

  function key(event) {
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "/" && !typing) { $("search").focus(); event.preventDefault(); return; }
    if (typing && event.target !== $("search")) return;
    if (event.key === "ArrowDown") move(1); else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Enter" && state.listed.length && event.target.tagName !== "BUTTON") go(state.listed[state.chosen]);
    else if ((event.key === "Backspace" && !typing) || event.key === "Escape") { if (parent[state.region] >= 0) go(parent[state.region]); } else return;
    event.preventDefault();
  }

  $("search").addEventListener("input", () => { state.chosen = 0; refreshList(); });
  $("log").addEventListener("change", () => { state.log = $("log").checked; draw(); });
  $("compare").addEventListener("input", () => {
    $("names").replaceChildren(...found($("compare").value).slice(0, 20).map((r) => element("option", { value: name(r) })));
    const wanted = $("compare").value.toLowerCase();
    const match = found(wanted.split(" / ").pop()).find((r) => name(r).toLowerCase() === wanted);
    state.other = match === undefined ? -1 : match; draw();
  });
  $("clear").addEventListener("click", () => { $("compare").value = ""; state.other = -1; draw(); });
  document.addEventListener("keydown", key);
  about();
  const asked = decodeURIComponent(location.hash.slice(1));
  const first = asked ? found(asked.split("/").pop()).find((r) => path(r).map((x) => labels[x]).join("/") === asked) : 0;
  go(first === undefined ? 0 : first);
  document.body.dataset.ready = "yes";
}

unpack().then(start);
