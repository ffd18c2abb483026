// Places: a map of one level, and a table of the regions below the one that is open. Both show one measure of a region.
// A measure is a function of a region with a name; `unsure` says whether noise may make most of it.
function measuresOf(data, tools) {
  const { words, regions } = data, { sizes, groups, bounds } = tools;
  const unit = (s) => (words.bin ? words.bin[s] : number(s));
  const share = (s) => ({ name: `share of ${words.groups} of ${words.size} ${unit(s)}`, short: `${words.size} ${unit(s)}, %`, unit: " %",
    of: (r) => (groups[r] ? (100 * (sizes(r).find(([size]) => size === s) || [0, 0])[1]) / groups[r] : null),
    unsure: (r) => { const ends = bounds(r).get(s), count = (sizes(r).find(([size]) => size === s) || [0, 0])[1];
      return Boolean(ends) && (ends[1] - ends[0]) / 3.92 > 0.3 * Math.max(count, 1e-9); } });
  const mean = { name: `mean ${words.size}`, short: `mean ${words.size}`, unit: "", unsure: () => false,
    of: (r) => (groups[r] ? sizes(r).reduce((sum, [size, count]) => sum + size * count, 0) / groups[r] : null) };
  const common = sizes(0).map(([s]) => s).sort((a, b) => a - b).slice(0, 12);
  return [...(words.bin ? [] : [mean]), ...common.map(share)];
}

const shade = (k) => `color-mix(in oklab, var(--main) ${[12, 32, 52, 74, 100][k]}%, var(--card))`;

function drawMap(data, tools, measure, chosen, go) {
  const { width, height, rings, members } = data.outlines, values = members.map((r) => measure.of(r));
  const known = values.filter((v) => v !== null).sort((a, b) => a - b);
  const cuts = [0.2, 0.4, 0.6, 0.8].map((q) => known[Math.floor(q * known.length)]);
  // The map shows the region that is open: all that lies in it, with a little room around.
  const inside = members.map((r, i) => i).filter((i) => tools.path(members[i]).includes(chosen)), box = [width, height, 0, 0];
  for (const i of inside.length ? inside : members.keys()) for (const [x, y, ...steps] of rings[i]) {
    let [px, py] = [x, y];
    for (let k = 0; k <= steps.length; k += 2) {
      box[0] = Math.min(box[0], px); box[1] = Math.min(box[1], py); box[2] = Math.max(box[2], px); box[3] = Math.max(box[3], py);
      px += steps[k]; py += steps[k + 1];
    }
  }
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
  const ends = [known[0], ...cuts, known[known.length - 1]];
  const key = known.length ? [0, 1, 2, 3, 4].map((k) => element("span", { class: "swatch", style: `--shade:${shade(k)}` },
    `${k ? "from " : ""}${number(ends[k])}${k === 4 ? ` to ${number(ends[5])}` : ""}${measure.unit}`)) : [];
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
