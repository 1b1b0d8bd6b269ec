// Categories of a column: bars that are buttons, or a menu with a search where there are many.
import { clauseOf, withClause } from "../core/clauses.js";
import { button, fill, h, show, write } from "../core/dom.js";
import { attachPopover } from "../core/popover.js";
import { picked } from "../core/selection_rules.js";
import { whole } from "../core/text.js";
import { apart, shortened } from "../draw/format.js";
import { binsOfRange, rangeOfBins } from "../draw/scales.js";
import { createBrush } from "../plots/brush.js";

const FEW = 12; // categories that are buttons beside each other, if their names are short
const LETTERS = 40;
const MOST_LISTED = 200;

/** Make the categories of a chip; `chosen()` are the keys now, `onchange(keys)` takes others, none for all. */
export function createCategories(label, { keys, names }, chosen, onchange) {
  const few = keys.length <= FEW && names.join("").length <= LETTERS;
  return few
    ? createBars(label, { keys, names }, chosen, onchange)
    : createMenu(label, { keys, names }, chosen, onchange);
}

function createBars(label, { keys, names }, chosen, onchange) {
  const cells = keys.map((key, i) => {
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    const word = h("span", { class: "word" }, names[i]);
    const el = button([bar, word], () => onchange(picked(chosen(), key, keys)), {
      class: "category",
      "aria-pressed": "false",
    });
    return { el, bar };
  });
  const el = h("div", { class: "categories", role: "group", "aria-label": label }, cells);

  function set({ all, kept }) {
    const values = chosen();
    const most = Math.max(1, ...all);
    cells.forEach((cell, i) => {
      cell.el.setAttribute("aria-pressed", String(values.includes(keys[i])));
      cell.el.title = `${names[i]}: ${whole(kept[i] ?? 0)} of ${whole(all[i] ?? 0)}`;
      cell.bar.style.height = `${Math.round(16 * Math.sqrt((kept[i] ?? 0) / most))}px`;
    });
  }

  return { el, set };
}

function createMenu(label, { keys, names }, chosen, onchange) {
  const open = button("", null, { class: "toggle", title: label });
  const el = h("div", { class: "categories many", role: "group", "aria-label": label }, open);
  /** @type {{ all: number[], kept: number[] }} */
  let given = { all: [], kept: [] };
  attachPopover(open, { label, content: () => content() });

  /** The categories that any sample has; of a thousand classes, data often have few. */
  function occurring() {
    const values = chosen();
    const all = keys.map((_, i) => i);
    return given.all.length ? all.filter((i) => given.all[i] > 0 || values.includes(keys[i])) : all;
  }

  function content() {
    const search = h("input", {
      type: "search",
      placeholder: `Search ${whole(occurring().length)}`,
      "aria-label": `Search ${label}`,
      oninput: () => list(),
    });
    const rows = h("div", { class: "checks" });
    const more = h("p", { class: "quiet-text" });
    const clear = button("all", () => (onchange([]), list()), { class: "link" });

    function list() {
      const values = chosen();
      const sought = search.value.trim().toLowerCase();
      const found = occurring().filter((i) => names[i].toLowerCase().includes(sought));
      const first = (i) => (values.includes(keys[i]) ? 0 : 1);
      found.sort((a, b) => first(a) - first(b) || a - b);
      fill(rows, found.slice(0, MOST_LISTED).map(check));
      const left = found.length - MOST_LISTED;
      write(more, found.length ? (left > 0 ? `${whole(left)} more: search for them` : "") : "nothing found");
    }

    function check(i) {
      const input = h("input", {
        type: "checkbox",
        "aria-label": names[i],
        onchange: () => onchange(picked(chosen(), keys[i], keys)),
      });
      input.checked = chosen().includes(keys[i]);
      return h("label", { class: "check" }, input, names[i], h("small", {}, whole(given.kept[i] ?? 0)));
    }

    list();
    return h("div", { class: "category-menu" }, h("div", { class: "search-line" }, search, clear), rows, more);
  }

  function set(next) {
    given = next;
    const values = chosen();
    const one = values.length === 1 ? shortened(names[keys.indexOf(values[0])] ?? "", 18) : "";
    write(open, values.length ? `${one || `${values.length} of ${whole(occurring().length)}`} ▾` : "all ▾");
  }

  return { el, set };
}

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
