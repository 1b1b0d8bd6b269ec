// One sample in the list or in the grid: its picture, its name and its number.

import { h, uid, write } from "../core/dom.js";
import { className } from "../core/text.js";
import { paint } from "../core/thumbnails.js";

/** The name, the class and the number of a sample, as far as they are known. */
export function wordsOf(app, sample, found) {
  const name = app.called(sample) || found?.name || "";
  const label = found?.label ?? app.state.arrays.label?.data[sample] ?? null;
  const kind = label === null || !app.state.classes.length ? "" : className(app.state, label);
  return { name, kind, number: `#${app.number(sample)}` };
}

/** Make an item; `fill(found, value)` once its picture is known. */
export function createItem(app, { sample, index, total, layout, onclick }) {
  const canvas = h("canvas", { class: "thumb", "aria-hidden": "true", width: 1, height: 1 });
  const label = h("span", { class: "row-label" });
  const kind = h("span", { class: "row-kind" });
  const value = h("span", { class: "row-value" });
  const el = h(
    "div",
    {
      class: layout === "grid" ? "cell" : "row",
      role: "option",
      id: uid("row"),
      "aria-selected": "false",
      "aria-setsize": String(total),
      "aria-posinset": String(index + 1),
      onclick,
    },
    canvas,
    h("span", { class: "row-words" }, label, kind, value),
  );
  let painted = false;

  function fill(found, text) {
    const words = wordsOf(app, sample, found);
    const first = words.name || words.kind || words.number;
    write(label, first);
    write(kind, words.name ? words.kind : "");
    write(value, text);
    el.title = [words.name, words.kind, words.number, text].filter(Boolean).join(" · ");
    el.setAttribute(
      "aria-label",
      `sample ${app.number(sample)}, ${[first, kind.textContent, text].filter(Boolean).join(", ")}`,
    );
    if (!found || painted) return;
    painted = true;
    canvas.hidden = !found.picture;
    if (found.picture) paint(canvas, found.picture);
  }

  return { el, fill, sample };
}
