// Any answer as a table of numbers: a row per field, a column per model.

import { fill, h } from "../core/dom.js";
import { short } from "../draw/format.js";

const MOST = 12;

/** The numbers of one model as short text. */
export function summary(data) {
  const shown = Array.from(data.slice(0, MOST), (number) => short(Number(number)));
  const rest = data.length - shown.length;
  return shown.join("  ") + (rest > 0 ? `  … ${rest} more` : "");
}

/** The view: fields shaped [models, ...] are split by model, others stand in one column. */
export function createView(el) {
  const table = h("table", { class: "values" });
  el.append(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "values" }, table));

  function set({ fields, models }) {
    const rows = Object.entries(fields).map(([name, { data, shape }]) => {
      const split = models.length > 0 && shape[0] === models.length;
      const step = split ? data.length / models.length : data.length;
      const cells = split ? models.map((_, m) => data.slice(m * step, (m + 1) * step)) : [data];
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, name),
        cells.map((part) => h("td", { colspan: split ? null : Math.max(1, models.length) }, summary(part))),
      );
    });
    const head = h(
      "tr",
      {},
      h("td", {}),
      models.map((name) => h("th", { scope: "col" }, name)),
    );
    fill(table, h("thead", {}, head), h("tbody", {}, rows));
  }

  return { set, destroy: () => el.replaceChildren() };
}
