// One stop for Tab in a table or a bar of many controls; arrows walk through it.

const CONTROLS = "button, select, input, [role=slider]";
const ALONG = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** Let arrows walk through the buttons of a table; cells without one are passed over. */
export function attachRoving(/** @type {HTMLTableElement} */ table) {
  const buttons = () => [...table.querySelectorAll("td button")];
  const stopAt = (chosen) => buttons().forEach((each) => each.setAttribute("tabindex", each === chosen ? "0" : "-1"));

  table.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    const cell = event.target instanceof Element ? event.target.closest("td") : null;
    const line = cell?.closest("tr");
    if (!step || !cell || !line) return;
    event.preventDefault();
    event.stopPropagation();
    let [row, column] = [line.rowIndex + step[0], cell.cellIndex + step[1]];
    for (; table.rows[row]?.cells[column]; row += step[0], column += step[1]) {
      const next = table.rows[row].cells[column].querySelector("button");
      if (next) {
        stopAt(next);
        next.focus();
        return;
      }
    }
  });
  return { renew: () => stopAt(buttons()[0]) };
}

/** Which arrows a control needs for itself; the others walk on. */
function needed(control) {
  if (control.matches("select")) return ["ArrowUp", "ArrowDown"];
  return control.matches("input, [role=slider]") ? ["ArrowLeft", "ArrowRight"] : [];
}

/** Let arrows walk through the controls of a toolbar; `renew` after its controls have changed. */
export function attachToolbar(/** @type {HTMLElement} */ bar) {
  const controls = () => [...bar.querySelectorAll(CONTROLS)].filter((each) => !each.closest(".popover"));
  const stopAt = (chosen) => controls().forEach((each) => each.setAttribute("tabindex", each === chosen ? "0" : "-1"));

  function walk(event) {
    const all = controls();
    const at = all.indexOf(event.target);
    const step = ALONG[event.key];
    if (at < 0 || !step || event.ctrlKey || event.altKey || event.metaKey || needed(all[at]).includes(event.key))
      return;
    event.preventDefault();
    event.stopPropagation(); // a slider knows all arrows
    const next = all[(at + step + all.length) % all.length];
    if (next instanceof HTMLElement) next.focus();
  }

  bar.addEventListener("keydown", walk, { capture: true });
  bar.addEventListener("focusin", (event) => {
    const here = controls().find((each) => each === event.target);
    if (here) stopAt(here);
  });
  return { renew: () => stopAt(controls().find((each) => each === document.activeElement) ?? controls()[0]) };
}
