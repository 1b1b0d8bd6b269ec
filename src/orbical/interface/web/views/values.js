// Any answer as a table of numbers: a row per quantity, a column per model.

import { fill, h } from "../core/dom.js";
import { modelInk } from "../draw/colors.js";
import { short, shortened } from "../draw/format.js";

/** @import { ViewContent } from "./index.js" */

const MOST = 12;
const LETTERS = 36; // of the names of all models, in a panel

/**
 * The rows of a field, a title and a text for each model in each: number by number where they are few, else their
 * range. Those of a field that begins with `atom_` are named by their atoms. What is missing at the end only fills
 * up a molecule that has fewer atoms than others.
 */
export function rowsOf(parts, name = "", title = "") {
  const numbers = parts.map((part) => Array.from(part, Number));
  if (numbers.some((part) => part.length > MOST)) return [[title, ...numbers.map(rangeOf)]];
  const last = Math.max(0, ...numbers.map((part) => part.findLastIndex(Number.isFinite)));
  const called = (row) => (name.startsWith("atom_") ? `${title}, atom ${row}` : row ? "" : title);
  return Array.from({ length: last + 1 }, (_, row) => [called(row), ...numbers.map((part) => short(part[row] ?? NaN))]);
}

/** What a field is called: the score by its meaning, others with their unit. */
export function titleOf(name, state) {
  const score = state?.metrics?.find((metric) => metric.name === "score")?.title;
  if (score && name === "score") return score;
  if (score && name === "score_vs_consensus") return `${score} vs. consensus`;
  const unit = state?.units?.[name];
  return (state?.titles?.[name] ?? name.replaceAll("_", " ")) + (unit ? `, ${unit}` : "");
}

function rangeOf(numbers) {
  const known = numbers.filter(Number.isFinite);
  if (!known.length) return "–";
  const [low, high] = known.reduce(([a, b], one) => [Math.min(a, one), Math.max(b, one)], [known[0], known[0]]);
  return `${known.length} values, ${short(low)} to ${short(high)}`;
}

/** The view: fields shaped [models, ...] are split by model, others stand in one column. */
export function createView(el, state) {
  const table = h("table", { class: "values" });
  el.append(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "values" }, table));

  function set(/** @type {ViewContent} */ { fields, models: asked, colors = [], part }) {
    const models = part === "input" ? [] : asked; // one input for all models
    const width = Math.max(1, models.length);
    const rows = Object.entries(fields).flatMap(([name, { data, shape }]) => {
      const split = models.length > 0 && shape[0] === models.length;
      const step = split ? data.length / models.length : data.length;
      const cells = split ? models.map((_, m) => data.slice(m * step, (m + 1) * step)) : [data];
      return rowsOf(cells, name, titleOf(name, state)).map(([title, ...row]) =>
        h(
          "tr",
          {},
          title ? h("th", { scope: "row" }, title) : h("td", {}),
          row.map((text) => h("td", { colspan: split ? null : width }, text)),
        ),
      );
    });
    const head = h(
      "tr",
      {},
      models.length ? h("td", {}) : null,
      models.map((name, m) => heading(name, colors[m], Math.min(18, Math.floor(LETTERS / width)))),
    );
    fill(table, h("thead", {}, head), h("tbody", {}, rows));
  }

  function heading(name, color, most) {
    const made = h("th", { scope: "col", title: name }, shortened(name, most));
    if (color) made.style.color = modelInk(color);
    return made;
  }

  return { set, destroy: () => el.replaceChildren() };
}
