// One stop for Tab in a table of many buttons; arrows walk through it.

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
