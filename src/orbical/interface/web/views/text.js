// Texts of all models under each other, with what differs from the truth marked, and the consensus of each.

import { fill, h } from "../core/dom.js";
import { modelInk } from "../draw/colors.js";
import { fixed } from "../draw/format.js";

/** @import { Field, ViewContent } from "./index.js" */

/** The text of one row out of code points [rows, length]; a negative one ends it. */
export function textOf(/** @type {Field | undefined} */ field, row = 0) {
  if (!field) return null;
  const length = field.shape[field.shape.length - 1];
  const codes = Array.from(field.data.slice(row * length, (row + 1) * length));
  return codes.filter((code) => code >= 0).map((code) => String.fromCodePoint(code)); // prettier-ignore
}

/** Whether each letter of a text belongs to a longest common subsequence with another one. */
export function shared(text, other) {
  const best = Array.from({ length: text.length + 1 }, () => new Int32Array(other.length + 1));
  for (let i = text.length - 1; i >= 0; i -= 1)
    for (let j = other.length - 1; j >= 0; j -= 1)
      best[i][j] = text[i] === other[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  const marks = text.map(() => false);
  for (let i = 0, j = 0; i < text.length && j < other.length;) {
    if (text[i] === other[j]) {
      marks[i] = true;
      i += 1;
      j += 1;
    } else if (best[i + 1][j] >= best[i][j + 1]) i += 1;
    else j += 1;
  }
  return marks;
}

function letters(text, reference) {
  if (!text.length) return [h("i", { class: "no-text" }, "no text")];
  const marks = reference ? shared(text, reference) : text.map(() => true);
  return text.map((letter, i) => h("span", { class: marks[i] ? null : "wrong" }, letter));
}

/** The view. */
export function createView(el) {
  const list = h("dl", { class: "texts" });
  el.append(list);

  function row(name, color, text, reference, after = "") {
    const title = h("dt", {}, name);
    if (color) title.style.color = modelInk(color);
    return [title, h("dd", {}, ...letters(text, reference), h("small", {}, after))];
  }

  function set(/** @type {ViewContent} */ { fields, truths = {}, consensus = {}, models, colors }) {
    const truth = textOf(Object.values(truths)[0]);
    const agreed = Object.values(consensus)[0];
    const sure = fields.confidence?.data;
    fill(
      list,
      ...(truth ? row("truth", null, truth, null) : []),
      ...models.flatMap((model, m) => {
        const text = textOf(fields.text, m) ?? [];
        const usual = textOf(agreed, m);
        const differs = usual && usual.join("") !== text.join("");
        const note = Number.isFinite(sure?.[m]) ? ` ${fixed(sure[m], 2)}` : "";
        return [
          ...row(model, colors[m], text, truth ?? usual, note),
          ...(differs ? [h("dt", {}), h("dd", { class: "usual" }, "consensus ", ...letters(usual, truth))] : []),
        ];
      }),
    );
  }

  return { set, destroy: () => el.replaceChildren() };
}
