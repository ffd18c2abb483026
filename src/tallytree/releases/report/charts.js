"use strict";
// Charts of the report: each takes facts and returns an SVG element. Nothing here knows the state of the page.
const number = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 2 });
const short = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 2, notation: Math.abs(value) < 1e5 ? "standard" : "compact" });
const element = (tag, attributes = {}, ...children) => {
  const node = tag === "svg" || attributes.svg
    ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") node.style.cssText = value;  // an attribute of that name is what the page's policy refuses
    else if (name !== "svg" && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
};
const shape = (tag, attributes, ...children) => element(tag, { ...attributes, svg: true }, ...children);
const label = (x, y, text, anchor = "middle") => shape("text", { x, y, "text-anchor": anchor }, text);
const $ = (id) => document.getElementById(id);

async function unpack() {
  const bytes = Uint8Array.from(atob($("data").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function items(id, texts) {
  $(id).replaceChildren(...(texts || []).map((text) => element("li", {}, text)));
  $(id).parentElement.hidden = !texts || texts.length === 0;
}

// What every page says around its numbers: the guarantee, how to read them, how they came about.
function around(data) {
  for (const id of ["lead", "protection", "made"]) $(id).textContent = data[id];
  for (const [id, text] of [["watermark", data.watermark], ["source-note", data.source], ["citation", data.citation]]) {
    $(id).hidden = !text;
    $(id).textContent = text || "";
  }
  $("budget").replaceChildren(...data.budget.flatMap((part) => [element("span", {}, part.name),
    element("div", { class: "share", title: part.detail }, element("div", { style: `width:${100 * part.share}%` })),
    element("span", {}, `${(100 * part.share).toLocaleString("en-US", { maximumFractionDigits: 1 })} %`)]));
  $("budget").parentElement.hidden = data.budget.length < 2;
  $("budget-note").textContent = data.budgetNote || "";
  $("checks").replaceChildren(...data.checks.map((check) => element("li", { class: check.passed ? "ok" : "failed" },
    `${check.passed ? "✓" : "✗"} ${check.name}${check.detail ? ": " + check.detail : ""}`)));
  for (const id of ["statement", "public", "confidential", "counting", "use", "read", "notes"]) items(id, data[id]);
}

// "size 3", or "3 people" where a page was told what groups are; classes by their names.
const sized = (words, text) => (words.measure ? `${text} ${text === "1" ? words.one : words.total}` : `${words.size} ${text}`);
// A size by its name: that of its class, or "12+" where 12 is a public bound that stands for all larger sizes too.
const sizeName = (words, s) => (words.bin ? words.bin[s] : number(s) + (s === words.open ? "+" : ""));
const sizeInWords = (words, s) => sized(words, sizeName(words, s));
// Sizes from one to another; without an end where they reach the bound.
const spanName = (words, first, last) => (first === last ? sizeName(words, first) : last >= words.open ? `${number(first)}+` : `${number(first)}–${number(last)}`);
// Sums and means that groups of unknown size add to are at least so much.
const atLeast = (words, rows) => (rows.some(([size]) => size === words.open) ? "at least " : "");

function save(name, rows) {
  const quoted = (v) => (/[",\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v));
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n"], { type: "text/csv" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const LEFT = 60, BOTTOM = 36, TOP = 12;

// Bars: every size on its own while there are few; else classes 10–14, 15–19, 20–29, 30–49, 50–69, 70–99, 100–149 …, so that
// a wide range fits one chart. Bins of a histogram are put together until at most 60 bars are left.
function classes(smallest, largest, bins) {
  const out = [];
  if (bins) {
    const width = Math.ceil(bins.length / 60);
    for (let first = 0; first < bins.length; first += width) out.push([first, Math.min(first + width, bins.length) - 1]);
    return out;
  }
  const alone = largest <= 30 ? largest : 9;
  for (let size = Math.min(smallest, 1); size <= alone; size++) out.push([size, size]);
  for (let power = 10; power <= largest && alone === 9; power *= 10)
    [1, 1.5, 2, 3, 5, 7, 10].forEach((start, i, starts) => {
      if (i < 6 && start * power <= largest) out.push([start * power, starts[i + 1] * power - 1]);
    });
  return out;
}

function ticks(top, logarithmic) {
  if (!top) return [0];
  if (logarithmic) {
    const powers = [0];
    for (let tick = 1; tick <= top; tick *= 10) powers.push(tick);
    return powers.filter((tick, i) => powers.length < 7 || i % 2 === 0);
  }
  const raw = top / 5, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= raw);
  const out = [];
  for (let tick = 0; tick <= top * 1.001; tick += step) out.push(Number(tick.toPrecision(12)));
  return out;
}

function frame(width, height, about, marks, y, unit) {
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": about });
  for (const tick of marks) svg.append(shape("line", { x1: LEFT, x2: width, y1: y(tick), y2: y(tick), class: "axis" }),
    label(LEFT - 6, y(tick) + 4, short(tick) + unit, "end"));
  return svg;
}

// `series` holds one list of [size, count] per region, the compared one second; then bars are percentages of each region's groups.
// `dense` divides each bar by the number of sizes in its class, so that wide and narrow classes compare; a last class without an end has none.
function barChart({ series, bounds, words, logarithmic, dense, about, width }) {
  const height = 260, compared = series.length > 1, unit = compared ? " %" : "";
  const sizes = series.flat().map(([size]) => size);
  const groups = classes(Math.min(...sizes), Math.max(...sizes), words.bin);
  const of = new Map(groups.flatMap(([first, last], i) => words.bin || first === last
    ? Array.from({ length: last - first + 1 }, (_, k) => [first + k, i]) : []));
  const place = (size) => of.get(size) ?? groups.findIndex(([first, last]) => first <= size && size <= last);
  const wideness = ([first, last]) => (last >= words.open ? Infinity : words.spans ? (words.spans[last][1] ?? Infinity) - words.spans[first][0] + 1 : last - first + 1);
  const heights = series.map((rows) => {
    const out = groups.map(() => 0), total = compared ? rows.reduce((sum, [, count]) => sum + count, 0) / 100 || 1 : 1;
    for (const [size, count] of rows) out[place(size)] += count / total;
    return out.map((value, i) => (dense ? value / wideness(groups[i]) : value));
  });
  const ends = groups.map(([first, last], i) => (first === last && !compared && bounds.get(first) ? bounds.get(first).map((end) => (dense ? end / wideness(groups[i]) : end)) : undefined));
  const top = Math.max(0, ...heights.flat(), ...ends.filter(Boolean).map(([, high]) => high));
  const step = (width - LEFT) / groups.length, scale = (v) => (logarithmic ? Math.log1p(v) / Math.log1p(top) : v / top);
  const y = (v) => height - BOTTOM - (height - BOTTOM - TOP) * (top ? scale(Math.max(v, 0)) : 0);
  const svg = frame(width, height, about, ticks(top, logarithmic), y, unit);
  const wide = (step * 0.8) / series.length;
  let free = 0;  // labels that would run into the one before are left out
  const mark = (x, text, anchor = "middle") => {
    const half = 3.5 * text.length;
    if (anchor !== "end" && x + (anchor === "start" ? 2 : 1) * half > width) { x = width; anchor = "end"; }
    const from = anchor === "start" ? x : anchor === "end" ? x - 2 * half : x - half;
    if (from < free) return;
    svg.append(label(x, height - BOTTOM + 16, text, anchor));
    free = from + 2 * half + 4;
  };
  const every = Math.ceil((words.bin && !words.edges ? 76 : words.edges ? 48 : 30) / step);
  groups.forEach(([first, last], i) => {
    const x = LEFT + i * step, title = words.edges && first < last ? `${words.edges[first]} to ${words.edges[last + 1]}`
      : words.bin ? words.bin[first] + (first < last ? ` … ${words.bin[last]}` : "") : spanName(words, first, last);
    series.forEach((_, k) => svg.append(shape("rect", { x: x + step * 0.1 + k * wide, y: y(heights[k][i]), width: wide,
      height: height - BOTTOM - y(heights[k][i]), class: k ? "bar other" : "bar" },
    shape("title", {}, `${sized(words, title)}: ${number(heights[k][i])}${unit}${ends[i] ? ` (${number(ends[i][0])} to ${number(ends[i][1])})` : ""}`))));
    if (ends[i]) svg.append(shape("line", { x1: x + step / 2, x2: x + step / 2, y1: y(ends[i][0]), y2: y(ends[i][1]), class: "whisker" }));
    if (words.edges) { if (i % every === 0) mark(x, words.edges[first]); }
    else if (words.bin) { if (i % every === 0) mark(x + step / 2, cut(words.bin[first])); }
    else if (first === last ? i % every === 0 : "125".includes(String(first)[0]) && !/5/.test(String(first)[1])) {
      mark(first === last ? x + step / 2 : x, short(first) + (first === words.open ? "+" : ""), first < last ? "start" : step < 24 && i === groups.length - 1 ? "end" : "middle");
    }
  });
  const classed = words.spans || groups.some(([first, last]) => first < last);
  const measure = words.measure || words.size;
  svg.append(label(width, height - 4, !classed ? measure : dense ? `${measure}; bars are per single size` : `${measure}, in classes`, "end"));
  return svg;
}

const cut = (text) => (text.length > 11 ? text.slice(0, 10) + "…" : text);

function curveChart({ series, words, about, width }) {
  const height = 240;
  const lines = series.map((rows) => { const total = rows.reduce((sum, [, count]) => sum + count, 0) || 1; let seen = 0;
    return rows.filter(([size]) => size !== words.open).map(([size, count]) => { seen += count; return [words.edges ? size + 1 : size, (100 * seen) / total]; }); });
  const most = words.edges ? words.edges.length - 1 : Math.max(1, ...lines.flat().map(([size]) => size));
  const along = words.edges ? (size) => size / most : (size) => Math.log1p(size) / Math.log1p(most);
  const x = (size) => LEFT + (width - LEFT - 8) * along(size), y = (v) => height - BOTTOM - ((height - BOTTOM - TOP) * v) / 100;
  const svg = frame(width, height, about, [0, 25, 50, 75, 100], y, " %");
  let free = 0;
  const marks = words.edges ? words.edges.map((_, i) => i).filter((i) => i % Math.ceil((48 * (most + 1)) / (width - LEFT)) === 0)
    : [0, 1, 2, 3, 4, 5, 7, 10, 20, 30, 50, 70, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5, 1e6].filter((tick) => tick <= most);
  for (const mark of marks) {
    if (x(mark) < free) continue;
    svg.append(label(x(mark), height - BOTTOM + 16, words.edges ? words.edges[mark] : short(mark), x(mark) > width - 16 ? "end" : "middle"));
    free = x(mark) + 30;
  }
  lines.forEach((line, i) => {
    let d = `M${x(0)},${y(0)}`, last = 0;
    for (const [size, v] of line) { d += words.edges ? ` L${x(size)},${y(v)}` : ` L${x(size)},${y(last)} L${x(size)},${y(v)}`; last = v; }
    svg.append(shape("path", { d: d + ` L${x(most)},${y(last)}`, class: i ? "line other" : "line" }));
  });
  svg.append(label(width, height - 4, words.edges ? words.axis : `${words.measure || words.size}, logarithmic`, "end"));
  return svg;
}
