// Places: a map of one level, and a table of the regions below the one that is open. Both show one measure of a region.
// A measure is a function of a region with a name; `unsure` says whether noise may make most of it.
function measuresOf(data, tools) {
  const { words, regions } = data, { sizes, groups, bounds } = tools;
  if (data.statistics) return data.statistics.names.flatMap((name, i) => (name === "rows" ? [] : measuresOfStatistic(data.statistics, name, i)));
  const share = (s) => ({ name: `share of ${words.groups} ${words.measure ? "with" : "of"} ${sizeInWords(words, s)}`, short: `${sizeInWords(words, s)}, %`, unit: " %",
    of: (r) => (groups[r] ? (100 * (sizes(r).find(([size]) => size === s) || [0, 0])[1]) / groups[r] : null),
    unsure: (r) => { const ends = bounds(r).get(s), count = (sizes(r).find(([size]) => size === s) || [0, 0])[1];
      return Boolean(ends) && (ends[1] - ends[0]) / 3.92 > 0.3 * Math.max(count, 1e-9); } });
  const called = (words.mean || `mean ${words.size}`) + (atLeast(words, sizes(0)) ? ", at least" : "");
  const mean = { name: called, short: called, unit: "", unsure: () => false,
    of: (r) => (groups[r] ? sizes(r).reduce((sum, [size, count]) => sum + size * count, 0) / groups[r] : null) };
  const common = sizes(0).map(([s]) => s).sort((a, b) => a - b).slice(0, 12);
  return [...(words.bin ? [] : [mean]), ...common.map(share)];
}

// A statistic of a region as text, and the ends of its interval.
function statistic({ values, low, high }, r, i) {
  if (values[r][i] === null) return ["–", ""];
  return [number(values[r][i]), low ? `${number(low[r][i])} to ${number(high[r][i])}` : ""];
}

// A statistic as a measure; in tables the ends of its interval stand beside it, where there are some.
function measuresOfStatistic({ values, low, high }, name, i) {
  const unsure = (r) => Boolean(low) && values[r][i] !== null && (high[r][i] - low[r][i]) / 3.92 > 0.3 * Math.max(Math.abs(values[r][i]), 1e-9);
  const of = (table) => (r) => table[r][i];
  const shown = { name, short: name, unit: "", unsure, of: of(values) };
  return low && i < 2 ? [shown, { ...shown, name: `${name}, at least`, short: "at least", of: of(low) }, { ...shown, name: `${name}, at most`, short: "at most", of: of(high) }] : [shown];
}

const shade = (k) => `color-mix(in oklab, var(--main) ${[12, 32, 52, 74, 100][k]}%, var(--card))`;

// Left, top, right and bottom of an outline.
function extentOf(rings) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y, ...steps] of rings) {
    let [px, py] = [x, y];
    for (let k = 0; k <= steps.length; k += 2) {
      box[0] = Math.min(box[0], px); box[1] = Math.min(box[1], py); box[2] = Math.max(box[2], px); box[3] = Math.max(box[3], py);
      px += steps[k]; py += steps[k + 1];
    }
  }
  return box;
}

// What a map shows: the middle nine tenths of the outlines and all that lie near, so that a few far islands do not make the rest tiny. Second,
// the places of those that are left out.
function frameOf(extents) {
  const middle = (axis) => extents.map(([, b]) => (b[axis] + b[axis + 2]) / 2).sort((a, b) => a - b);
  const at = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))], [xs, ys] = [middle(0), middle(1)];
  const box = [at(xs, 0.05), at(ys, 0.05), at(xs, 0.95), at(ys, 0.95)];
  let left = extents, before = 0;
  while (left.length !== before) {
    before = left.length;
    const near = 0.1 * Math.max(box[2] - box[0], box[3] - box[1]);
    left = left.filter(([, b]) => {
      if (b[0] > box[2] + near || b[2] < box[0] - near || b[1] > box[3] + near || b[3] < box[1] - near) return true;
      box[0] = Math.min(box[0], b[0]); box[1] = Math.min(box[1], b[1]); box[2] = Math.max(box[2], b[2]); box[3] = Math.max(box[3], b[3]);
      return false;
    });
  }
  // Where many are far apart, all of them are shown.
  if (left.length <= 0.05 * extents.length) return [box, left.map(([i]) => i)];
  return [extents.reduce(([a, b, c, d], [, e]) => [Math.min(a, e[0]), Math.min(b, e[1]), Math.max(c, e[2]), Math.max(d, e[3])], box), []];
}

// A bar of 1, 2 or 5 times a power of ten kilometres, at most a fifth of the map long, in its lower left corner.
function scaleBar(km, [x, y, width, height], pixels) {
  const most = 0.2 * width * km, power = 10 ** Math.floor(Math.log10(most)), size = power * [5, 2, 1].find((times) => times * power <= most);
  const letters = (11 * width) / Math.min(pixels, (480 * width) / height), [left, bottom] = [x + 0.02 * width, y + height - 0.02 * width], long = size / km;
  return shape("g", { class: "scale-bar" }, shape("polyline", { points: `${left},${bottom - letters / 2} ${left},${bottom} ${left + long},${bottom} ${left + long},${bottom - letters / 2}` }),
    shape("text", { x: left + long / 2, y: bottom - letters, "text-anchor": "middle", style: `font-size:${letters}px` }, `${number(size)} km`));
}

function drawMap(data, tools, measure, chosen, go) {
  const { rings, members } = data.outlines, values = members.map((r) => measure.of(r));
  const known = values.filter((v) => v !== null).sort((a, b) => a - b);
  const cuts = [0.2, 0.4, 0.6, 0.8].map((q) => known[Math.floor(q * known.length)]);
  // The map shows the region that is open: all that lies in it, with a little room around.
  const within = members.map((r, i) => i).filter((i) => tools.path(members[i]).includes(chosen));
  const [box, far] = frameOf((within.length ? within : members.map((_, i) => i)).map((i) => [i, extentOf(rings[i])]));
  const room = 0.03 * Math.max(box[2] - box[0], box[3] - box[1], 40);
  const seen = [box[0] - room, box[1] - room, box[2] - box[0] + 2 * room, box[3] - box[1] + 2 * room];
  const svg = element("svg", { viewBox: seen.join(" "), role: "img", "aria-label": `Map: ${measure.name}` });
  members.forEach((r, i) => {
    const d = rings[i].map(([x, y, ...steps]) => `M${x} ${y}l${steps.join(" ")}z`).join("");
    const v = values[i], unsure = v !== null && measure.unsure(r);
    const path = shape("path", { d, class: unsure ? "place unsure" : "place", "data-region": r,
      style: `fill:${v === null ? "none" : shade(cuts.filter((cut) => v >= cut).length)}`, "fill-rule": "evenodd" },
    shape("title", {}, `${tools.name(r)}: ${v === null ? "nothing here" : number(v) + measure.unit}${unsure ? ", unreliable" : ""}`));
    path.addEventListener("click", () => go(r));
    if (r === chosen) path.classList.add("here");
    svg.append(path);
  });
  if (data.outlines.km) svg.append(scaleBar(data.outlines.km, seen, $("map").clientWidth || 760));
  const said = (k) => (k === 0 ? `below ${number(cuts[0])}${measure.unit}` : k === 4 ? `${number(cuts[3])}${measure.unit} and more`
    : `${number(cuts[k - 1])} to ${number(cuts[k])}${measure.unit}`);
  const key = known.length ? [0, 1, 2, 3, 4].map((k) => element("span", { class: "swatch", style: `--shade:${shade(k)}` }, said(k))) : [];
  if (far.length) {
    const above = (r) => tools.labels[tools.path(r)[Math.min(1, tools.path(r).length - 1)]];
    key.push(element("span", {}, `far away, outside this frame: ${[...new Set(far.map((i) => above(members[i])))].join(", ")}; open one to see it`));
  }
  if (members.some((r, i) => values[i] !== null && measure.unsure(r))) key.push(element("span", { class: "swatch pale" }, "pale: unreliable, noise may be a third of it or more"));
  return [svg, key];
}

// `state` is { by, down }: the column that sorts, and in which direction; `again` draws the table anew.
function childTable(children, measures, tools, words, state, again, go) {
  const columns = [{ short: "name", of: (r) => tools.labels[r], text: true }, { short: words.groups, of: (r) => tools.groups[r] }, ...measures.slice(0, 8)];
  const value = columns[state.by] || columns[0];
  const sorted = [...children].sort((a, b) => {
    const [x, y] = [value.of(a), value.of(b)], order = value.text ? x.localeCompare(y, "en", { numeric: true }) : (x ?? -1) - (y ?? -1);
    return state.down ? -order : order;
  });
  const head = element("tr", {}, ...columns.map((column, i) => {
    const button = element("button", { type: "button" }, column.short + (i === state.by ? (state.down ? " ↓" : " ↑") : ""));
    button.addEventListener("click", () => { state.down = i === state.by ? !state.down : i > 0; state.by = i; again(); });
    return element("th", { "aria-sort": i === state.by ? (state.down ? "descending" : "ascending") : "none" }, button);
  }));
  const show = (column, r) => { const v = column.of(r); return v === null ? "" : column.text ? v : number(v); };
  const body = sorted.slice(0, 500).map((r) => {
    const row = element("tr", {}, ...columns.map((column) => element("td", {}, show(column, r))));
    row.addEventListener("click", () => go(r));
    return row;
  });
  const rows = [columns.map((column) => column.short), ...sorted.map((r) => columns.map((column) => column.of(r) ?? ""))];
  return [element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)), rows];
}
