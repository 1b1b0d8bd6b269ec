// The samples of the subset in order: a list box with pictures, walked with arrow keys.

import { fill, h, uid } from "../core/dom.js";
import { className } from "../core/text.js";
import { paint } from "../core/thumbnails.js";
import { formatter, significant } from "../draw/format.js";
import { createSelect } from "./frame.js";
import { hints } from "./help_text.js";

const ORDERS = [
  ["worst", "worst first"],
  ["best", "best first"],
  ["variable", "most variable"],
];

/** The sorted list beside the embedding. */
export function createSection(el, app) {
  const order = createSelect("Sort", (value) => app.select({ order: value }), { quiet: true, title: hints.list });
  const box = h("div", {
    class: "rows",
    role: "listbox",
    tabindex: "0",
    "aria-label": "Sorted samples",
    title: hints.list,
  });
  el.append(h("div", { class: "list" }, order.el, box));
  let samples = [];
  let values = [];
  let rows = new Map();

  function makeRow(sample, value, format) {
    const canvas = h("canvas", { class: "thumb", "aria-hidden": "true", width: 1, height: 1 });
    const text = h("span", { class: "row-label" });
    const row = h(
      "div",
      { class: "row", role: "option", id: uid("row"), "aria-selected": "false", onclick: () => app.select({ sample }) },
      canvas,
      h("span", { class: "row-words" }, text, h("span", { class: "row-value" }, format(value))),
    );
    return { row, canvas, text, painted: false };
  }

  function draw(answer) {
    if (answer.error) return fill(box, h("p", { class: "quiet-text" }, answer.error));
    samples = Array.from(answer.arrays.samples.data);
    values = Array.from(answer.arrays.values.data);
    const metric = app.sampleMetric();
    // A variance has the square of the unit: its numbers are written bare, by their first digits.
    const spread = app.store.get().order === "variable" && metric.unit !== "share";
    const most = Math.max(...values.map(Math.abs).filter(Number.isFinite), 0);
    const format = spread
      ? (value) => significant(value, 2)
      : formatter(metric.unit, [metric.low ?? 0, metric.high ?? (most || 1)]);
    rows = new Map(samples.map((sample, i) => [sample, makeRow(sample, values[i], format)]));
    fill(
      box,
      samples.length
        ? [...rows.values()].map((one) => one.row)
        : h("p", { class: "quiet-text" }, `No ${app.noun} in this subset.`),
    );
    app.listed(samples);
    mark(false);
    picture();
  }

  /** Paint what is known; ask for the rows in sight and a little beyond. */
  function picture() {
    const height = 44;
    const first = Math.max(0, Math.floor(box.scrollTop / height) - 4);
    const sight = samples.slice(first, first + Math.ceil((box.clientHeight || 400) / height) + 12);
    for (const sample of sight) {
      const found = app.thumbnails.get(sample);
      const one = rows.get(sample);
      if (!found || !one || one.painted) continue;
      one.painted = true;
      one.canvas.hidden = !found.picture;
      if (found.picture) paint(one.canvas, found.picture);
      one.text.textContent =
        found.label === null || !app.state.classes.length
          ? app.called(sample) || `#${app.number(sample)}`
          : className(app.state, found.label);
      one.row.setAttribute(
        "aria-label",
        `sample ${app.number(sample)}, ${one.text.textContent}, ${one.row.lastChild.lastChild.textContent}`,
      );
    }
    app.thumbnails.want(sight.filter((sample) => !app.thumbnails.get(sample)));
  }

  function mark(scroll = true) {
    const { sample } = app.store.get();
    for (const [other, { row }] of rows) row.setAttribute("aria-selected", String(other === sample));
    const chosen = rows.get(sample);
    if (chosen) box.setAttribute("aria-activedescendant", chosen.row.id);
    else box.removeAttribute("aria-activedescendant");
    if (chosen && scroll) reveal(chosen.row);
    order.set(ORDERS, app.store.get().order);
  }

  /** Scroll the list alone, never the page. */
  function reveal(row) {
    const top = row.offsetTop - box.offsetTop;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + row.offsetHeight > box.scrollTop + box.clientHeight)
      box.scrollTop = top + row.offsetHeight - box.clientHeight;
  }

  box.addEventListener("scroll", picture, { passive: true });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -1e6, End: 1e6 }[event.key];
    if (!step) return;
    event.preventDefault();
    app.step(step);
  });
  const stops = [
    app.on("list", draw),
    app.thumbnails.on(picture),
    app.store.subscribe(["sample", "order"], () => mark()),
    app.store.subscribe(["metric", "reference", "models"], () => rows.forEach((one) => (one.painted = false))),
  ];
  return { focus: () => box.focus(), destroy: () => stops.forEach((stop) => stop()) };
}
