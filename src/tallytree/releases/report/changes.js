// The page of a comparison: how many changes are clear on each level, and a table of them to search and sort.
const SHOWN = 500;

function start(data) {
  const { head, rows, levels, words } = data, sorting = { by: head.indexOf("p_value"), down: false };
  const [LEVEL, REGION, CLEAR] = ["level", "region", "clear"].map((name) => head.indexOf(name));
  const columns = ["region", words.size, "first", "second", "difference", "low", "high"].map((name) => head.indexOf(name));
  const titles = ["region", words.size, words.first, words.second, "difference", "at least", "at most"];

  function chosen() {
    const level = $("level").value, wanted = $("search").value.toLowerCase();
    const found = rows.filter((row) => (!level || row[LEVEL] === level) && (!$("clear").checked || row[CLEAR]) && row[REGION].toLowerCase().includes(wanted));
    const order = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : Math.abs(a) - Math.abs(b));
    return found.sort((a, b) => (sorting.down ? -1 : 1) * order(a[sorting.by], b[sorting.by]));
  }

  function draw() {
    const found = chosen();
    $("shown").textContent = found.length > SHOWN ? `The first ${number(SHOWN)} of ${number(found.length)}.` : `${number(found.length)} rows.`;
    const cells = columns.map((place, i) => {
      const button = element("button", { type: "button" }, titles[i] + (place === sorting.by ? (sorting.down ? " ↓" : " ↑") : ""));
      button.addEventListener("click", () => { sorting.down = place === sorting.by ? !sorting.down : i > 1; sorting.by = place; draw(); });
      return element("th", {}, button);
    });
    const body = found.slice(0, SHOWN).map((row) => element("tr", { class: row[CLEAR] ? "sure" : "" },
      ...columns.map((place) => element("td", {}, typeof row[place] === "string" ? row[place] : number(row[place])))));
    $("changes").replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...cells)), element("tbody", {}, ...body)));
    $("save").onclick = () => save("changes.csv", [head, ...found]);
  }

  $("lead").textContent = data.lead;
  items("read", data.read);
  $("level").replaceChildren(element("option", { value: "" }, "all"), ...levels.map(({ level }) => element("option", { value: level }, level)));
  const summary = levels.map((one) => element("tr", {}, ...[one.level, number(one.counts), number(one.clear)].map((text) => element("td", {}, text))));
  $("summary").replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...["level", "numbers compared", "clear changes"].map((text) => element("th", {}, text)))),
    element("tbody", {}, ...summary)));
  for (const id of ["level", "clear"]) $(id).addEventListener("change", draw);
  $("search").addEventListener("input", draw);
  if (!rows.some((row) => row[CLEAR])) $("clear").checked = false;
  draw();
  document.body.dataset.ready = "yes";
}

unpack().then(start);
