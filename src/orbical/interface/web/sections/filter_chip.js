// One column in the filter bar: its title, what is kept of it, and the histogram to choose from.

import { button, h, show, write } from "../core/dom.js";
import { clauseOf, withClause } from "../core/clauses.js";
import { binsOfRange, rangeOfBins } from "../draw/bins.js";
import { apart, shortened } from "../draw/format.js";
import { createBrush } from "../plots/brush.js";
import { createCategories } from "./category_chip.js";

/** The names of the categories: classes by their names. */
export function categoryNames(column, state) {
  return (column.keys ?? state.classes).map(String);
}

/** Make the chip of a column; `set(answer)` with its counts, `onremove` takes it from the bar. */
export function createChip(column, app, { model, onmodel, onremove }) {
  const { state, store } = app;
  const label = column.title;
  const summary = h("span", { class: "chip-kept" });
  const clear = button("×", () => (choose(null), onremove()), {
    class: "chip-clear",
    title: `Clear or hide ${label}`,
    "aria-label": `Clear or hide ${label}`,
  });
  const whose = column.by_model && state.models.length > 1 ? owners() : null;
  const title = h("span", { class: "chip-title", title: column.meaning }, label);
  const body = { number, category, text }[column.kind]();
  const el = h(
    "div",
    { class: `filter-chip of-${column.kind}`, "data-column": column.name },
    h("div", { class: "chip-head" }, title, summary, whose, clear),
    body.el,
  );

  function choose(clause, done = true) {
    store.set({ filter: withClause(store.get().filter, { column: column.name, model }, clause) }, { done });
  }

  /** Whose numbers: a model, or the mean over models. */
  function owners() {
    const mean = column.kind === "number" ? [["", "mean"]] : [];
    const options = [...mean, ...state.models.map(({ name }) => [name, shortened(name, 12)])];
    const select = h(
      "select",
      { class: "chip-model", "aria-label": `Model of ${label}`, onchange: () => onmodel(select.value) },
      options.map(([value, words]) => h("option", { value }, words)),
    );
    select.value = model;
    return select;
  }

  function number() {
    let edges = [0, 1];
    let count = 1;
    const brush = createBrush(label, (range, done) => choose(range && rangeOfBins(range, edges, count), done));
    const ends = ["from", "to"].map(() => h("span", { "aria-hidden": "true" })); // the handles say them

    const unit = ["°", "px"].includes(column.unit) ? column.unit : "";
    const written = (value) => `${apart(value, [edges[0], edges.at(-1)], 3)}${unit}`;

    function named(edge) {
      return edge >= edges.length ? "never" : written(edges[edge]);
    }

    function set({ edges: given, all, kept }) {
      if (brush.dragging()) return;
      [edges, count] = [given, all.length];
      const clause = clauseOf(store.get().filter, column.name, model);
      const range = clause ? binsOfRange(clause, edges, count) : null;
      brush.set({ all, kept, range, named });
      ends.forEach((end, i) => write(end, all.some(Boolean) ? named(i * count) : ""));
    }

    function words({ low, high }) {
      if (low === Infinity) return "never";
      if (low === -Infinity) return `≤ ${written(high)}`;
      const from = written(low);
      return high === Infinity ? `≥ ${from}` : `${from} – ${written(high)}`;
    }

    return { el: h("div", { class: "brush-line" }, ends[0], brush.el, ends[1]), set, words };
  }

  function category() {
    const names = categoryNames(column, state);
    const keys = column.keys ?? names.map((_, i) => String(i));
    const chosen = () => clauseOf(store.get().filter, column.name, model)?.values ?? [];
    const take = (values) => choose(values.length ? { values } : null);
    return { ...createCategories(label, { keys, names }, chosen, take), words: () => "" };
  }

  function text() {
    const value = () => clauseOf(store.get().filter, column.name)?.values?.[0] ?? "";
    const input = h("input", {
      type: "search",
      "aria-label": `Search ${label}`,
      placeholder: "search",
      oninput: () => choose(input.value ? { values: [input.value] } : null),
    });
    const set = () => {
      if (document.activeElement !== input) input.value = value();
    };
    set();
    return { el: input, set, words: () => "" };
  }

  function set(counts) {
    if (counts) body.set(counts);
    const clause = clauseOf(store.get().filter, column.name, model);
    el.classList.toggle("active", Boolean(clause));
    const words = clause ? body.words(clause) : "";
    show(summary, Boolean(words));
    write(summary, words);
  }

  set(null);
  return { el, set, column, model };
}
