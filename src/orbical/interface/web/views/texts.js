// Texts of an input: a paragraph for each field, and its list of texts with the letter of each position.

import { fill, h } from "../core/dom.js";
import { titleOf } from "./values.js";

/** @import { Field, ViewContent } from "./index.js" */

const DECODER = new TextDecoder();

/** The texts of UTF-8 bytes [length] or [texts, length], which zeros fill up. */
export function textsOf(/** @type {Field} */ { data, shape }) {
  const length = shape[shape.length - 1];
  const rows = length ? data.length / length : 0;
  return Array.from({ length: rows }, (_, row) => {
    const bytes = Uint8Array.from(data.slice(row * length, (row + 1) * length));
    const end = bytes.indexOf(0);
    return DECODER.decode(end < 0 ? bytes : bytes.subarray(0, end));
  });
}

/** The letter that each text of an order such as "order B A C D" has in the data; null for another place. */
export function lettersOf(name, count) {
  const letters = /^order ((?:[A-Z] ?)+)$/
    .exec(name ?? "")?.[1]
    .trim()
    .split(" ");
  return letters?.length === count ? letters : null;
}

/** The view. */
export function createView(el, state) {
  const box = h("div", { class: "passages scroll", tabindex: "0", role: "region", "aria-label": "texts" });
  el.append(box);

  function set(/** @type {ViewContent} */ { fields, place }) {
    const named = Object.entries(fields).sort(([, a], [, b]) => a.shape.length - b.shape.length);
    fill(
      box,
      ...named.map(([name, field]) => {
        const texts = textsOf(field);
        if (field.shape.length < 2) return h("p", {}, texts[0] ?? "");
        const letters = lettersOf(place?.name, texts.length);
        const entries = texts.map((text, at) => {
          const moved = letters && letters[at] !== String.fromCharCode(65 + at);
          return h("li", {}, text, moved ? h("small", {}, ` option ${letters[at]}`) : null);
        });
        return h("ol", { type: "A", "aria-label": titleOf(name, state) }, ...entries);
      }),
    );
  }

  return { set, destroy: () => el.replaceChildren() };
}
