// The report of a map: a heat map to point at and to draw boxes on. Counts of boxes come from running sums of the drawn cells,
// standard errors from the tree of measured boxes, both worked out here from what was released.
const rounded = (value) => number(Math.abs(value) < 100 ? value : Math.round(value));

// From nothing to the densest place; in the dark the other way round, so that empty land recedes.
const LIGHT = [[250, 250, 246], [254, 227, 145], [252, 157, 67], [221, 73, 62], [140, 24, 92], [45, 8, 66]];
const DARK = [[24, 28, 36], [70, 20, 84], [150, 34, 96], [222, 82, 68], [252, 168, 84], [255, 240, 190]];

// Variance of a box's estimate (noise, and places of points inside boxes that are cut) and the part of it that is read off by area: see
// kernels/boxes/trees.py for the walk.
function uncertainties(tree, dimensions) {
  const n = tree.children.length, own = tree.own.map((i) => tree.variances[i]);
  const first = new Int32Array(n), below = new Float64Array(n), best = new Float64Array(n);
  for (let v = 0, next = 1; v < n; v++) { first[v] = next; next += tree.children[v]; }
  for (let v = n - 1; v >= 0; v--) {
    for (let c = first[v]; c < first[v] + tree.children[v]; c++) below[v] += best[c];
    best[v] = tree.children[v] === 0 ? own[v] : own[v] < 0 ? below[v] : (own[v] * below[v]) / (own[v] + below[v]);
  }
  return (low, high) => {
    const inside = (v) => {
      let part = 1;
      for (let axis = 0, i = v * dimensions; axis < dimensions; axis++, i++) {
        const from = Math.max(tree.low[i], low[axis]), to = Math.min(tree.high[i], high[axis]);
        if (to <= from) return 0;
        part *= (to - from) / (tree.high[i] - tree.low[i]);
      }
      return part;
    };
    const walk = (v) => {
      const part = inside(v);
      if (part <= 0) return [0, 0, 0];
      if (part >= 1 - 1e-12) return [best[v], best[v], 0];
      if (tree.children[v] === 0) {
        const count = Math.max(0, tree.values[v]);
        unknown += part * (1 - part) * (count + tree.clustering * count * count);
        border += Math.sqrt(part * (1 - part)) * count * tree.alongBorder;
        return [part * best[v], part * part * best[v], part * tree.values[v]];
      }
      let covariance = 0, variance = 0, byArea = 0;
      for (let c = first[v]; c < first[v] + tree.children[v]; c++) {
        const [k, u, a] = walk(c);
        covariance += k; variance += u; byArea += a;
      }
      if (own[v] < 0) return [covariance, variance, byArea];
      const total = below[v] + own[v];
      return [(covariance * own[v]) / total, Math.max(0, variance - (covariance * covariance) / total), byArea];
    };
    let unknown = 0, border = 0;
    const [, variance, byArea] = walk(0);
    return [variance + unknown + border * border, byArea];
  };
}

function start(data) {
  const dimensions = data.fine.length, axes = Math.min(2, dimensions), [nx, ny] = data.cells, counts = data.counts;
  const box = axes === 2 ? data.box.slice(0, 2) : [data.box[0], [0, 1]];
  const sums = new Float64Array((nx + 1) * (ny + 1)), at = (i, j) => sums[i * (ny + 1) + j];
  for (let i = 0; i < nx; i++) for (let j = 0, row = 0; j < ny; j++) {
    row += counts[i * ny + j];
    sums[(i + 1) * (ny + 1) + j + 1] = at(i, j + 1) + row;
  }
  const uncertainty = uncertainties(data.tree, dimensions);
  // Columns are cut evenly, or at stated edges (data.lines); bins may have names, both ends of a range then being names.
  const lines = (axis) => (data.lines && data.lines[axis]) || null, names = (axis) => (data.names && data.names[axis]) || null;
  const place = (axis, line) => {
    const stated = lines(axis), first = Math.min(Math.floor(line), data.cells[axis] - 1);
    if (stated) return stated[first] + (stated[first + 1] - stated[first]) * (line - first);
    return box[axis][0] + ((box[axis][1] - box[axis][0]) * line) / data.cells[axis];
  };
  const nearest = (axis, value) => {
    const stated = lines(axis);
    if (stated && !Number.isNaN(value)) return stated.reduce((best, x, i) => (Math.abs(x - value) < Math.abs(stated[best] - value) ? i : best), 0);
    return Math.round(((value - box[axis][0]) / (box[axis][1] - box[axis][0])) * data.cells[axis]);
  };
  const narrowest = (axis) => (lines(axis) ? Math.min(...lines(axis).slice(1).map((x, i) => x - lines(axis)[i])) : (box[axis][1] - box[axis][0]) / data.cells[axis]);
  const digits = [0, 1].map((axis) => Math.max(0, -Math.floor(Math.log10(narrowest(axis)))));
  const coordinate = (axis, line, end = 0) => (names(axis) ? names(axis)[Math.min(names(axis).length - 1, Math.max(0, Math.floor(line) - end))]
    : place(axis, line).toLocaleString("en-US", { maximumFractionDigits: digits[axis] }));
  const state = { cell: null, anchor: null, chosen: null };

  // A box is [first x, one past the last x, first y, one past the last y] in drawn cells.
  function ask([x0, x1, y0, y1]) {
    const ends = [[x0, x1], [y0, y1]].slice(0, axes);
    const low = data.fine.map((n, axis) => (axis < axes ? (ends[axis][0] * n) / data.cells[axis] : 0));
    const high = data.fine.map((n, axis) => (axis < axes ? (ends[axis][1] * n) / data.cells[axis] : n));
    const [variance, byArea] = uncertainty(low, high);
    return { estimate: at(x1, y1) - at(x0, y1) - at(x1, y0) + at(x0, y0), error: Math.sqrt(variance), byArea };
  }

  function words(area) {
    const { estimate, error, byArea } = ask(area), [x0, x1, y0, y1] = area;
    const low = estimate - 1.96 * error, high = estimate + 1.96 * error;
    const where = data.columns.slice(0, axes).map((name, axis) =>
      `${name} ${coordinate(axis, axis ? y0 : x0)} to ${coordinate(axis, axis ? y1 : x1, 1)}`).join(", ");
    const lines = [element("strong", {}, `${rounded(estimate)} ± ${rounded(error)}`), element("br"),
      `95 % interval ${rounded(data.nonnegative ? Math.max(0, low) : low)} to ${rounded(high)}, noise and places inside boxes`, element("br"), where];
    if (Math.abs(byArea) >= 0.005) lines.push(element("br"), `${rounded(byArea)} of it by share of area`);
    return lines;
  }

  function draw() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches && !state.printing, ramp = dark ? DARK : LIGHT;
    const busy = counts.filter((count) => count > 0).sort((a, b) => a - b);
    const typical = busy.length ? busy[Math.floor(0.1 * (busy.length - 1))] : 1;
    const top = busy.length ? Math.log1p(busy[Math.floor(0.999 * (busy.length - 1))] / typical) : 1;
    const canvas = $("canvas");
    canvas.width = nx; canvas.height = ny;
    const picture = new ImageData(nx, ny);
    for (let i = 0; i < nx; i++) for (let j = 0; j < ny; j++) {
      const level = Math.min(1, Math.log1p(Math.max(0, counts[i * ny + j]) / typical) / top) * (ramp.length - 1);
      const lower = Math.min(Math.floor(level), ramp.length - 2), share = level - lower, pixel = 4 * ((ny - 1 - j) * nx + i);
      for (let part = 0; part < 3; part++) picture.data[pixel + part] = ramp[lower][part] * (1 - share) + ramp[lower + 1][part] * share;
      picture.data[pixel + 3] = 255;
    }
    canvas.getContext("2d").putImageData(picture, 0, 0);
    $("ramp").style.background = `linear-gradient(to right, ${ramp.map((c) => `rgb(${c})`).join(", ")})`;
    $("ramp-labels").replaceChildren(...[0, 0.25, 0.5, 0.75, 1].map((part) =>
      element("span", {}, short(typical * Math.expm1(top * part)) + (part === 1 ? ` ${data.entities} per cell drawn` : ""))));
  }

  function frame() {
    // The drawn field has the shape of the box, within reason.
    const ratio = axes === 1 ? 8 : Math.min(4, Math.max(0.5, (box[0][1] - box[0][0]) / (box[1][1] - box[1][0])));
    $("field").style.aspectRatio = String(ratio);
    if (ratio < 1) $("field").style.maxWidth = `${Math.round(42 * Math.max(ratio, 0.6))}rem`;
    const ticks = (axis) => [0, 0.25, 0.5, 0.75, 1].map((part) => coordinate(axis, part * data.cells[axis]));
    const named = (axis) => ticks(axis).map((text, i) => (i === 2 ? element("span", { class: "name" }, data.columns[axis]) : element("span", {}, text)));
    $("right").replaceChildren(...named(0));
    if (axes === 2) $("up").replaceChildren(...named(1));
    $("right").style.maxWidth = $("field").style.maxWidth;
  }

  function lay(node, area) {
    node.hidden = !area;
    if (!area) return;
    const [x0, x1, y0, y1] = area;
    Object.assign(node.style, { left: `${(100 * x0) / nx}%`, width: `${(100 * (x1 - x0)) / nx}%`,
      bottom: `${(100 * y0) / ny}%`, height: `${(100 * (y1 - y0)) / ny}%` });
  }

  function show() {
    const cell = state.cell && [state.cell[0], state.cell[0] + 1, state.cell[1], state.cell[1] + 1];
    lay($("cursor"), cell);
    lay($("chosen"), state.chosen);
    $("cell").replaceChildren(...(cell ? words(cell) : ["Nothing yet."]));
    const area = state.chosen || [0, nx, 0, ny];
    $("answer").replaceChildren(...words(area));
    data.columns.slice(0, axes).forEach((_, axis) => [0, 1].forEach((end) => { $(`end-${axis}-${end}`).value = place(axis, area[2 * axis + end]).toFixed(digits[axis] + 1); }));
  }

  const between = (a, b) => [Math.min(a[0], b[0]), Math.max(a[0], b[0]) + 1, Math.min(a[1], b[1]), Math.max(a[1], b[1]) + 1];

  function under(event) {
    const field = $("canvas").getBoundingClientRect();
    const part = [(event.clientX - field.left) / field.width, 1 - (event.clientY - field.top) / field.height];
    return part.map((share, axis) => Math.max(0, Math.min(data.cells[axis] - 1, Math.floor(share * data.cells[axis]))));
  }

  function key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (event.key === "Escape") { state.chosen = state.anchor = null; show(); return; }
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    const before = state.cell || [nx >> 1, ny >> 1];
    if (event.shiftKey && !state.anchor) state.anchor = before;
    if (!event.shiftKey) state.anchor = null;
    state.cell = state.cell ? before.map((line, axis) => Math.max(0, Math.min(data.cells[axis] - 1, line + step[axis]))) : before;
    if (event.shiftKey) state.chosen = between(state.anchor, state.cell);
    show();
    event.preventDefault();
  }

  // Typed ends are moved to the lines of the drawn grid.
  function typed() {
    const area = [0, nx, 0, ny];
    for (let axis = 0; axis < axes; axis++) {
      const ends = [0, 1].map((end) => nearest(axis, Number($(`end-${axis}-${end}`).value)));
      if (ends.some(Number.isNaN)) return;
      area[2 * axis] = Math.max(0, Math.min(data.cells[axis] - 1, Math.min(...ends)));
      area[2 * axis + 1] = Math.max(area[2 * axis] + 1, Math.min(data.cells[axis], Math.max(...ends)));
    }
    state.chosen = area;
    show();
  }

  function about() {
    around(data);
    $("note").textContent = data.note;
    $("coarse").hidden = !data.tree.coarse;
    $("facts").replaceChildren(...data.facts.map(([k, v]) => element("div", {}, element("dt", {}, k), element("dd", {}, v))));
    if (data.outlines) {
      const d = data.outlines.map((ring) => `M${ring.slice(0, 2).join(" ")}L${ring.slice(2).join(" ")}`).join("");
      $("borders").replaceChildren(shape("path", { d }));
    }
    $("ends").replaceChildren(...data.columns.slice(0, axes).flatMap((name, axis) => [0, 1].flatMap((end) => [
      element("label", { for: `end-${axis}-${end}` }, end ? "to" : `${name} from`),
      element("input", { id: `end-${axis}-${end}`, type: "number", step: "any", min: box[axis][0], max: box[axis][1] })])));
  }

  const field = $("field");
  field.addEventListener("pointermove", (event) => {
    state.cell = under(event);
    if (state.anchor && event.buttons) state.chosen = between(state.anchor, state.cell);
    show();
  });
  field.addEventListener("pointerdown", (event) => { state.anchor = under(event); field.setPointerCapture(event.pointerId); });
  field.addEventListener("pointerup", () => { state.anchor = null; });
  field.addEventListener("keydown", key);
  about();
  $("ends").addEventListener("change", typed);
  $("ends").addEventListener("submit", (event) => { event.preventDefault(); typed(); });
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", draw);
  addEventListener("beforeprint", () => { state.printing = true; draw(); });
  addEventListener("afterprint", () => { state.printing = false; draw(); });
  frame();
  draw();
  show();
  document.body.dataset.ready = "yes";
}

unpack().then(start);
