// A row that scrolls sideways fades at the ends beyond which there is more of it.
import { parseClause, withClause } from "../core/clauses.js";
import { button, fill, h } from "../core/dom.js";
import { attachToolbar } from "../core/roving.js";
import { createChip } from "./filter_chip.js";

/** Mark a row as `more-before` and `more-after`; `renew` where it holds other parts. */
export function attachEdgeFade(row) {
  function look() {
    const left = row.scrollWidth - row.clientWidth - row.scrollLeft;
    row.classList.toggle("more-before", row.scrollLeft > 1);
    row.classList.toggle("more-after", left > 1);
  }

  function renew() {
    sized.disconnect();
    for (const one of [row, ...row.children]) sized.observe(one);
  }

  const sized = new ResizeObserver(look); // it hears of each part once, too
  row.addEventListener("scroll", look, { passive: true });
  renew();
  return { renew, destroy: () => sized.disconnect() };
}

const FIRST = ["label", "correct", "confidence", "gap", "first_failure"];
const MOST_GIVEN = 3; // columns of the data that are shown at first

/** The bar under the header; on its left the place of the subset. */
export function createSection(el, app) {
  const { state, store } = app;
  const byName = new Map(state.columns.map((column) => [column.name, column]));
  const offered = state.columns.filter(({ name }) => name !== "search");
  const chips = h("div", { class: "chips", role: "toolbar", "aria-label": "Columns to filter by" });
  const toolbar = attachToolbar(chips);
  const fade = attachEdgeFade(chips);
  const more = h("select", { class: "more-columns", "aria-label": "Add a column to the filter bar", onchange: add });
  const fold = button("Filters", () => folded(!el.classList.contains("folded")), {
    class: "link fold",
    "aria-expanded": "true",
  });
  el.append(fold, chips, more); // the subset stands before them
  if (!offered.length) el.hidden = true;
  const usual = (column) => (column.by_model && column.kind === "category" ? state.models[0].name : "");
  let shown = first();
  let made = [];
  let answered = null;

  /** At first the usual columns and some of the data's own. */
  function first() {
    const given = offered.filter((column) => column.given && column.kind !== "text").slice(0, MOST_GIVEN);
    const names = [...FIRST.filter((name) => byName.has(name)), ...given.map(({ name }) => name)];
    return names.map((name) => ({ name, model: usual(byName.get(name)) }));
  }

  function folded(on) {
    el.classList.toggle("folded", on);
    fold.setAttribute("aria-expanded", String(!on));
  }

  function add() {
    const column = byName.get(more.value);
    if (column) shown = [...shown, { name: column.name, model: usual(column) }];
    more.value = "";
    layout();
  }

  /** Columns of the filter are always shown, whoever put them there. */
  function wanted() {
    const named = (one) => `${one.name}@${one.model}`;
    const clauses = store
      .get()
      .filter.map(parseClause)
      .filter(({ column }) => column !== "search")
      .map(({ column, model }) => ({ name: column, model }));
    const known = new Set(shown.map(named));
    shown = [...shown, ...clauses.filter((one) => byName.has(one.name) && !known.has(named(one)))];
    return shown;
  }

  function layout() {
    made = wanted().map((one) => {
      const column = byName.get(one.name);
      return createChip(column, app, {
        model: one.model,
        onmodel: (model) => move(one, model),
        onremove: () => hide(one),
      });
    });
    fill(chips, made);
    toolbar.renew();
    fade.renew();
    const left = offered.filter(({ name }) => !shown.some((one) => one.name === name));
    fill(
      more,
      h("option", { value: "" }, "+ column"),
      left.map(({ name, title }) => h("option", { value: name }, title)),
    );
    more.hidden = !left.length;
    ask();
  }

  /** Another model: its clause goes with it. */
  function move(one, model) {
    const { filter } = store.get();
    const clause = filter
      .map(parseClause)
      .find(({ column, model: whose }) => column === one.name && whose === one.model);
    shown = shown.map((other) => (other === one ? { ...one, model } : other));
    const without = withClause(filter, { column: one.name, model: one.model }, null);
    if (clause) app.select({ filter: withClause(without, { column: one.name, model }, clause) });
    layout();
    chips.querySelector(`[data-column="${CSS.escape(one.name)}"] select`)?.focus();
  }

  /** Without a clause a chip is taken from the bar; with one, the clause alone goes. */
  function hide(one) {
    const had = answered?.filter
      .map(parseClause)
      .some(({ column, model }) => column === one.name && model === one.model);
    if (had) return;
    shown = shown.filter((other) => other !== one);
    layout();
  }

  function ask() {
    const columns = made.map(({ column, model }) => ({ column: column.name, model }));
    if (columns.length) app.request("columns", { columns });
  }

  function draw(answer) {
    if (answer.error) return;
    answered = { filter: store.get().filter };
    const key = ({ column, model }) => `${column}@${model}`;
    const places = new Map(answer.columns.map((one, place) => [key(one), { ...one, place }]));
    for (const chip of made) {
      const found = places.get(key({ column: chip.column.name, model: chip.model }));
      if (!found) continue;
      const [all, kept] = ["all", "kept"].map((part) => answer.arrays[`${found.place}/${part}`]?.data ?? []);
      chip.set({ edges: found.edges, all, kept });
    }
  }

  function change() {
    const before = shown.length;
    if (wanted().length !== before) return layout();
    made.forEach((chip) => chip.set(null));
    return ask();
  }

  const stops = [app.on("columns", draw), app.store.subscribe(["filter", "subset"], change), fade.destroy];
  layout();
  return { destroy: () => stops.forEach((stop) => stop()) };
}
