// Tables by attributes of groups: sizes of the chosen values stacked or side by side; and people by class.
const pairsOf = (run) => { const out = []; for (let i = 0; i < run.length; i += 2) out.push([run[i], run[i + 1]]); return out; };

// `series` holds one list of [size, count] per value; bars are numbers of groups.
function valueChart({ series, names, colours, words, stacked, about, width }) {
  const height = 260, sizes = series.flat().map(([size]) => size);
  const groups = classes(Math.min(...sizes), Math.max(...sizes), words.bin);
  const heights = series.map((rows) => groups.map(([first, last]) =>
    rows.reduce((sum, [size, count]) => sum + (first <= size && size <= last ? count : 0), 0)));
  const sums = groups.map((_, i) => heights.reduce((sum, of) => sum + of[i], 0));
  const top = Math.max(0, ...(stacked ? sums : heights.flat())), step = (width - LEFT) / groups.length;
  const y = (v) => height - BOTTOM - (top ? ((height - BOTTOM - TOP) * v) / top : 0);
  const svg = frame(width, height, about, ticks(top, false), y, ""), wide = (step * 0.8) / (stacked ? 1 : series.length);
  const every = Math.ceil((words.bin ? 76 : 30) / step);
  groups.forEach(([first, last], i) => {
    const title = words.bin ? words.bin[first] : spanName(words, first, last);
    let below = 0;
    heights.forEach((of, k) => {
      const from = stacked ? below : 0, x = LEFT + i * step + step * 0.1 + (stacked ? 0 : k * wide);
      svg.append(shape("rect", { x, y: y(from + of[i]), width: wide, height: y(from) - y(from + of[i]), class: `bar value${colours[k] % 6}` },
        shape("title", {}, `${names[k]}, ${sized(words, title)}: ${number(of[i])}`)));
      below += of[i];
    });
    if (i % every === 0) svg.append(label(LEFT + (i + 0.5) * step, height - BOTTOM + 16, words.bin ? cut(words.bin[first]) : short(first) + (first === words.open ? "+" : "")));
  });
  svg.append(label(width, height - 4, words.measure || words.size, "end"));
  return svg;
}

// The controls: which attribute, which of its values, and how bars stand. `redraw` is called on every change.
function setUpValues(data, redraw) {
  if (!data.by) return;
  const node = (id) => document.getElementById(id);
  const fill = () => {
    const attribute = Number(node("by-attribute").value);
    node("by-values").replaceChildren(...data.by.values[attribute].map((name, i) => {
      const box = element("input", { type: "checkbox", value: i });
      box.checked = data.by.runs[attribute][0][i].length > 0;
      box.addEventListener("change", redraw);
      return element("label", {}, box, ` ${name}`);
    }));
  };
  node("by-attribute").replaceChildren(...data.by.names.map((name, i) => element("option", { value: i }, name)));
  node("by-attribute").addEventListener("change", () => { fill(); redraw(); });
  node("by-how").addEventListener("change", redraw);
  fill();
}

function drawValues(data, region, place, width) {
  const node = (id) => document.getElementById(id), { by, people, words } = data;
  node("by-section").hidden = !by;
  if (by) {
    const attribute = Number(node("by-attribute").value), rows = by.runs[attribute][region].map(pairsOf);
    const chosen = [...node("by-values").querySelectorAll("input")].flatMap((box, i) => (box.checked ? [i] : []));
    const series = chosen.map((i) => rows[i]), names = chosen.map((i) => by.values[attribute][i]);
    node("by-key").replaceChildren(...names.map((name, k) => element("span", { class: `key value${chosen[k] % 6}` }, name)));
    const empty = series.every((of) => of.length === 0), stacked = node("by-how").value === "stacked";
    const about = `${words.groups} by ${words.size} and ${by.names[attribute]} in ${place}`;
    node("by-bars").replaceChildren(empty ? element("p", { class: "hint" }, `There are no ${words.groups} here.`)
      : valueChart({ series, names, colours: chosen, words, stacked, about, width }));
    const head = [by.names[attribute], words.groups, ...(words.bin ? [] : [words.total, words.mean || `mean ${words.size}`])];
    const body = series.map((of, k) => {
      const least = atLeast(words, of), groups = of.reduce((sum, [, count]) => sum + count, 0), total = of.reduce((sum, [size, count]) => sum + size * count, 0);
      return [names[k], number(groups), ...(words.bin ? [] : [least + number(total), groups ? least + number(total / groups) : "–"])];
    });
    node("by-table").replaceChildren(plainTable(head, body));
  }
  node("people-section").hidden = !people;
  if (people) {
    const body = people.rows.flatMap((names, i) => (people.counts[region][i] ? [[...names, number(people.counts[region][i])]] : []));
    node("people-table").replaceChildren(plainTable([...people.names, words.total], body));
  }
}

// A population pyramid: two values side by side, the other attribute from below upwards. `rows` holds a list of [bin, count] per side.
function pyramidChart({ rows, names, colours, words, about, width }) {
  const groups = classes(0, words.bin.length - 1, words.bin), height = Math.max(160, 12 * groups.length) + BOTTOM + TOP;
  const heights = rows.map((of) => groups.map(([first, last]) => of.reduce((sum, [bin, count]) => sum + (first <= bin && bin <= last ? count : 0), 0)));
  const top = Math.max(1, ...heights.flat()), middle = (width - LEFT) / 2 + LEFT, half = (width - LEFT) / 2 - 4;
  const step = (height - BOTTOM - TOP) / groups.length, every = Math.ceil(14 / step);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": about });
  for (const tick of ticks(top, false)) for (const side of tick ? [-1, 1] : [1]) {
    const x = middle + (side * half * tick) / top;
    svg.append(shape("line", { x1: x, x2: x, y1: TOP, y2: height - BOTTOM, class: "axis" }), label(x, height - BOTTOM + 16, short(tick)));
  }
  groups.forEach(([first, last], i) => {
    const y = height - BOTTOM - (i + 1) * step, title = words.bin[first] + (first < last ? ` … ${words.bin[last]}` : "");
    heights.forEach((of, k) => {
      const wide = (half * of[i]) / top;
      svg.append(shape("rect", { x: k ? middle : middle - wide, y: y + step * 0.1, width: wide, height: step * 0.8, class: `bar value${colours[k] % 6}` },
        shape("title", {}, `${names[k]}, ${words.size} ${title}: ${number(of[i])}`)));
    });
    if (i % every === 0) svg.append(label(LEFT - 6, y + step / 2 + 4, cut(words.bin[first]), "end"));
  });
  svg.append(label(width, height - 4, words.groups, "end"));
  return svg;
}

function drawPyramid(data, region, place, width) {
  const node = (id) => document.getElementById(id), { by, pyramid, words } = data;
  node("pyramid-section").hidden = !pyramid;
  if (!pyramid) return;
  const rows = pyramid.sides.map((side) => pairsOf(by.runs[pyramid.by][region][side]));
  const names = pyramid.sides.map((side) => by.values[pyramid.by][side]);
  node("pyramid-key").replaceChildren(...names.map((name, k) => element("span", { class: `key value${pyramid.sides[k] % 6}` }, name)));
  node("pyramid").replaceChildren(pyramidChart({ rows, names, colours: pyramid.sides, words, about: `${words.groups} by ${words.size} and ${by.names[pyramid.by]} in ${place}`, width }));
}

function plainTable(head, body) {
  const row = (cells, tag) => element("tr", {}, ...cells.map((cell) => element(tag, {}, cell)));
  return element("table", {}, element("thead", {}, row(head, "th")), element("tbody", {}, ...body.map((cells) => row(cells, "td"))));
}
