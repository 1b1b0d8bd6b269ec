// The models with their values at one place of the orbit: legend and readout in one.

import { fill, h, modelLabel, write } from "../core/dom.js";

/** Make the row; `set(models, values, { place, format })` writes it without new elements. */
export function createLegend() {
  const place = h("span", { class: "place" });
  const items = h("span", { class: "items" });
  const el = h("div", { class: "legend" }, place, items);
  let names = "";
  let cells = [];

  function set(models, values, { where, format }) {
    const key = models.map((model) => model.name + model.color).join("|");
    if (key !== names) {
      names = key;
      cells = models.map((model) => {
        const number = h("b", {});
        return { number, el: h("span", { class: "item" }, ...modelLabel(model), number) };
      });
      fill(items, cells);
    }
    write(place, where);
    cells.forEach((cell, i) => write(cell.number, format(values ? values[i] : NaN)));
  }

  return { el, set };
}
