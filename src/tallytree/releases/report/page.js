// The report of a release: one page state (region, compared region), drawn anew on every change.
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const LISTED = 500, ROWS = 2000;

function start(data) {
  const { words, regions } = data, { labels, parent, runs } = regions;
  const children = labels.map(() => []);
  parent.forEach((p, r) => { if (p >= 0) children[p].push(r); });
  const level = parent.map(() => 0);
  parent.forEach((p, r) => { if (p >= 0) level[r] = level[p] + 1; });
  const path = (r) => (r < 0 ? [] : [...path(parent[r]), r]);
  const name = (r) => path(r).map((x) => labels[x]).join(" / ");
  const plainNames = labels.map((text) => text.toLowerCase());
  const sizes = (r) => { const out = []; for (let i = 0; i < runs[r].length; i += 2) out.push([runs[r][i], runs[r][i + 1]]); return out; };
  const groups = runs.map((run) => { let total = 0; for (let i = 1; i < run.length; i += 2) total += run[i]; return total; });
  const bounds = (r) => new Map([...(regions.bounds ? regions.bounds[r] : []).map(([s, low, high]) => [s, [low, high]]), ...zeros(r)]);
  const measure = words.measure || words.size;  // "number of people" where a page was told what groups are
  const state = { region: 0, other: -1, log: false, dense: false, chosen: 0, listed: [] };

  // Sizes that a region has no groups of, among those with bars of their own and a few beyond, with the ends of their counts: the end
  // follows from the groups per size around a size, as in group_sizes/intervals/zero_cells.py.
  function zeros(r) {
    const { steps, reaches, most } = regions.zeros || { steps: [] }, rows = sizes(r), here = steps[level[r]];
    if (!here || !rows.length) return [];
    const place = (s) => Math.min(s, 16) + Math.floor(8 * Math.log2(Math.max(s, 16) / 16));
    const first = (p) => (p <= 16 ? Math.max(p, 0) : Math.ceil(16 * 2 ** ((p - 16) / 8)));
    const end = (s) => {
      for (const [i, reach] of reaches.entries()) {
        const from = first(place(s) - reach), behind = first(place(s) + reach + 1);
        const near = rows.reduce((sum, [size, count]) => sum + (from <= size && size < behind ? count : 0), 0);
        if (near || i === reaches.length - 1) return here[i].findLast(([least]) => least <= near / (behind - from))[1];
      }
    };
    const counted = new Set(rows.map(([size]) => size)), largest = rows[rows.length - 1][0], out = [];
    const [least, beyond] = words.bin ? [0, words.bin.length - 1] : [Math.min(rows[0][0], 1), Math.min(largest <= 30 ? largest + 4 : 9, words.open ?? Infinity)];
    for (let s = least; s <= beyond; s++)
      if (!counted.has(s)) out.push([s, [0, Math.min(end(s), most === "region" ? groups[r] : most === "root" ? groups[0] : Infinity)]]);
    return out;
  }

  // Where a headline figure lies with the confidence of the intervals: ends by level and number of groups, as in group_sizes/intervals/total_ends.py.
  function range(r, value, over) {
    const here = regions.totals?.steps[level[r]];
    if (!here) return "";
    const [, low, high] = here.findLast(([least]) => least <= groups[r]) || here[0];
    const ends = [Math.max(0, value + low) / over, (value + high) / over].map(number);
    return ends[0] === ends[1] ? "" : ends.join(" to ");
  }

  function facts(r) {
    if (data.facts) return data.facts;
    if (data.statistics) return data.statistics.names.map((title, i) => [title, ...statistic(data.statistics, r, i)]);
    if (words.listed) return [[words.groups, number(groups[r])]];  // values without an order have no middle
    if (words.bin) {
      let seen = 0;
      const table = sizes(r), middle = table.find(([, count]) => (seen += count) >= groups[r] / 2);
      return [[words.groups, number(groups[r])], ...(middle ? [[`median ${measure}`, words.bin[middle[0]]],
        [`largest ${measure}`, words.bin[table[table.length - 1][0]]]] : [])];
    }
    const table = sizes(r), people = table.reduce((sum, [size, count]) => sum + size * count, 0);
    const least = atLeast(words, table);
    const rows = [[words.groups, number(groups[r])], [words.total, least + number(people), range(r, people, 1)]];
    if (groups[r]) {
      let seen = 0;
      const median = table.find(([, count]) => (seen += count) >= groups[r] / 2)[0];
      rows.push([`mean ${measure}`, least + number(people / groups[r]), regions.totals?.mean ? range(r, people, groups[r]) : ""], [`median ${measure}`, sizeName(words, median)],
        [`largest ${measure}`, sizeName(words, table[table.length - 1][0])]);
    }
    if (regions.emd) rows.push(["true error (EMD)", number(regions.emd[r])]);
    return rows;
  }

  function table(r) {
    const ends = bounds(r), rows = [...sizes(r), ...zeros(r).filter(([, [, high]]) => high > 0).map(([s]) => [s, 0])].sort(([a], [b]) => a - b);
    const head = [measure, words.groups, ...(regions.bounds ? ["low", "high"] : [])];
    const body = rows.slice(0, ROWS).map(([s, c]) => element("tr", {}, ...[sizeName(words, s), number(c),
      ...(regions.bounds ? (ends.get(s) || ["", ""]).map((v) => (v === "" ? "" : number(v))) : [])].map((v) => element("td", {}, v))));
    if (rows.length > ROWS) body.push(element("tr", {}, element("td", { colspan: head.length }, `… ${number(rows.length - ROWS)} more in counts.parquet`)));
    return element("table", {}, element("thead", {}, element("tr", {}, ...head.map((h) => element("th", {}, h)))), element("tbody", {}, ...body));
  }

  function largest(r) {
    const top = [];
    let seen = 0;
    for (const [s, c] of sizes(r).reverse()) {
      if (seen >= 10) break;
      top.push(c > 1 ? `${sizeName(words, s)} (${number(c)} times)` : sizeName(words, s));
      seen += c;
    }
    return top.join(", ") || "none";
  }

  function list(found) {
    state.listed = found.slice(0, LISTED);
    state.chosen = Math.min(state.chosen, Math.max(state.listed.length - 1, 0));
    const searching = $("search").value !== "";
    const rows = state.listed.map((r, i) => {
      const row = element("li", { role: "option", "aria-selected": String(i === state.chosen), "data-region": r },
        element("span", {}, labels[r], ...(searching && parent[r] >= 0 ? [element("small", {}, name(parent[r]))] : [])), element("span", {}, number(groups[r])));
      row.addEventListener("click", () => go(r));
      return row;
    });
    const note = (text) => rows.push(element("li", { class: "note", role: "presentation" }, text));
    if (found.length > LISTED) note(`${number(found.length - LISTED)} more: ${searching ? "type more of the name" : "search for a name"}`);
    if (!found.length) note(searching ? "No region has this in its name." : "No regions below this one.");
    $("list").replaceChildren(...rows);
  }

  // Names that are the text come first, then names that begin with it, then the rest, larger regions before smaller ones.
  function found(text) {
    const wanted = text.toLowerCase(), rank = [[], [], []];
    plainNames.forEach((plain, r) => { const at = plain.indexOf(wanted); if (at >= 0) rank[at ? 2 : plain.length > wanted.length ? 1 : 0].push(r); });
    return rank.flat();
  }

  function refreshList() { list($("search").value ? found($("search").value) : children[state.region]); }

  const tools = { sizes, groups, bounds, labels, name, path };
  const measures = data.facts ? [] : measuresOf(data, tools), sorting = { by: 0, down: false };

  function places() {
    const r = state.region;
    $("map-section").hidden = !data.outlines;
    if (data.outlines) {
      const [svg, key] = drawMap(data, tools, measures[$("measure").value || 0], r, go);
      $("map").replaceChildren(svg);
      $("map-key").replaceChildren(...key);
    }
    $("children-section").hidden = children[r].length === 0;
    const [shown, rows] = childTable(children[r], measures, tools, words, sorting, places, go);
    $("children").replaceChildren(shown);
    $("save-children").onclick = () => save(`${labels[r]} below.csv`, rows);
    $("save-numbers").onclick = () => save(`${labels[r]}.csv`, [...$("table").querySelectorAll("tr")].map((row) =>
      [...row.children].map((cell) => cell.textContent.replaceAll(",", ""))));
  }

  function legend() {
    const both = state.other < 0 ? [] : [state.region, state.other];
    return both.map((r, i) => element("span", { class: i ? "key other" : "key" }, name(r)));
  }

  function draw() {
    const r = state.region, shown = state.other >= 0 ? [r, state.other] : [r];
    const series = shown.map(sizes), width = Math.max(300, Math.min(900, $("bars").clientWidth || 760));
    const empty = series.every((rows) => rows.length === 0);
    const nothing = () => element("p", { class: "hint" }, `There are no ${words.groups} here.`);
    $("crumbs").replaceChildren(...path(r).map((x) => {
      const button = element("button", { type: "button" }, labels[x]);
      button.addEventListener("click", () => go(x));
      return element("li", {}, button);
    }));
    $("region").textContent = name(r) + (state.other >= 0 ? ` compared with ${name(state.other)}` : "");
    $("facts").replaceChildren(...facts(r).map(([k, v, ends]) => element("div", {}, element("dt", {}, k), element("dd", {}, v, ...(ends ? [element("small", {}, ends)] : [])))));
    $("by-size").textContent = capital(`${words.groups} by ${measure}${state.other >= 0 ? ", in percent of each region" : ""}`);
    $("bars").replaceChildren(empty ? nothing() : barChart({ series, bounds: bounds(r), words, logarithmic: state.log, dense: state.dense, width, about: `${words.groups} by ${words.size} in ${name(r)}` }));
    $("bars-key").replaceChildren(...legend());
    $("dense-choice").hidden = !(words.spans?.some(([low, high]) => high > low) || (!words.bin && Math.max(0, ...series.flat().map(([size]) => size)) > 30));
    $("whiskers").hidden = !regions.bounds || state.other >= 0 || empty;
    const ordered = !words.bin || words.edges;
    $("curve-section").hidden = !ordered;
    if (ordered) {
      $("curve-title").textContent = `Share of ${words.groups} up to each ${measure}`;
      $("curve").replaceChildren(empty ? nothing() : curveChart({ series, words, width, about: `Cumulative share in ${name(r)}` }));
      $("curve-key").replaceChildren(...legend());
    }
    $("largest-section").hidden = !words.largest;
    $("largest-title").textContent = words.largest;
    if (words.largest) $("largest").textContent = largest(r);
    $("table").replaceChildren(table(r));
    $("clear").hidden = state.other < 0;
    drawPyramid(data, r, name(r), width);
    drawValues(data, r, name(r), width);
    places();
    document.title = labels.length > 1 ? `${labels[r]} – ${data.title}` : data.title;
  }

  function go(r) {
    state.region = r; state.chosen = 0; $("search").value = "";
    history.replaceState(null, "", "#" + encodeURIComponent(path(r).map((x) => labels[x]).join("/")));
    refreshList(); draw();
  }

  function about() {
    around(data);
    $("measure").replaceChildren(...measures.map((one, i) => element("option", { value: i }, one.name)));
    setUpValues(data, draw);
    document.body.classList.toggle("single", labels.length === 1);
  }

  // Ranges of a histogram: two sliders over its edges.
  function sliders() {
    const edges = words.edges, n = words.bin.length;
    for (const id of ["from", "to"]) Object.assign($(id), { min: 0, max: n, value: id === "from" ? 0 : n });
    const sums = new Float64Array(n + 1);
    for (const [bin, count] of sizes(0)) sums[bin + 1] = count;
    for (let i = 0; i < n; i++) sums[i + 1] += sums[i];
    const show = () => {
      const [low, high] = [Number($("from").value), Number($("to").value)].sort((a, b) => a - b);
      const error = regions.errors && high > low ? ` ± ${number(regions.errors[low][high - low - 1])} (standard error)` : "";
      $("range-answer").textContent = `${edges[low]} to ${edges[high]}: ${number(sums[high] - sums[low])}${error}`;
    };
    for (const id of ["from", "to"]) $(id).addEventListener("input", show);
    $("range-section").hidden = false;
    $("range-hint").hidden = Boolean(regions.errors);
    show();
  }

  function move(by) {
    state.chosen = Math.max(0, Math.min(state.listed.length - 1, state.chosen + by));
    const rows = [...$("list").children];
    rows.forEach((row, i) => { if (row.dataset.region) row.setAttribute("aria-selected", String(i === state.chosen)); });
    rows[state.chosen]?.scrollIntoView({ block: "nearest" });
  }

  function key(event) {
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "/" && !typing) { $("search").focus(); event.preventDefault(); return; }
    if ((typing && event.target !== $("search")) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowDown") move(1); else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Enter" && state.listed.length && !["BUTTON", "SUMMARY"].includes(event.target.tagName)) go(state.listed[state.chosen]);
    else if ((event.key === "Backspace" && !typing) || event.key === "Escape") { if (parent[state.region] >= 0) go(parent[state.region]); } else return;
    event.preventDefault();
  }

  $("search").addEventListener("input", () => { state.chosen = 0; refreshList(); });
  $("dense").addEventListener("change", () => { state.dense = $("dense").checked; draw(); });
  $("log").addEventListener("change", () => { state.log = $("log").checked; draw(); });
  $("compare").addEventListener("input", () => {
    const wanted = $("compare").value.toLowerCase(), near = found(wanted.split(" / ").pop());
    $("names").replaceChildren(...near.slice(0, 20).map((r) => element("option", { value: name(r) })));
    const match = near.find((r) => name(r).toLowerCase() === wanted);
    state.other = match === undefined ? -1 : match; draw();
  });
  $("compare").addEventListener("change", () => {
    if (state.other >= 0 || !$("compare").value) return;
    const best = found($("compare").value.toLowerCase().split(/[/›]/).pop().trim())[0];
    if (best !== undefined) { state.other = best; $("compare").value = name(best); draw(); }
  });
  $("measure").addEventListener("change", places);
  $("clear").addEventListener("click", () => { $("compare").value = ""; state.other = -1; draw(); });
  if (labels.length > 1) document.addEventListener("keydown", key);
  addEventListener("resize", draw);
  addEventListener("beforeprint", () => { $("numbers").open = runs[state.region].length <= 120; });
  about();
  if (words.edges && !data.statistics) sliders();
  const asked = decodeURIComponent(location.hash.slice(1));
  const first = asked ? found(asked.split("/").pop()).find((r) => path(r).map((x) => labels[x]).join("/") === asked) : 0;
  go(first === undefined ? 0 : first);
  document.body.dataset.ready = "yes";
}

unpack().then(start);
