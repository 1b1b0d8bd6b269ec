// A molecule with the forces that each model predicts as arrows, above all numbers.

import { h, show } from "../core/dom.js";
import * as points from "./points.js";
import * as values from "./values.js";

/** @import { ViewContent } from "./index.js" */

/** The forces of each model on the atoms that count, in the model's color; none where they are not known. */
export function forcesOf(/** @type {ViewContent} */ { fields, inputs, models, colors }) {
  const { pos, mask } = inputs ?? {};
  const { forces } = fields;
  if (!pos || forces?.data.length !== models.length * pos.data.length) return [];
  const size = pos.data.length;
  const known = models.map((_, m) => {
    const data = forces.data.subarray(m * size, (m + 1) * size);
    return { color: colors[m], vectors: points.counted({ data, shape: pos.shape }, mask) };
  });
  return known.filter(({ vectors }) => vectors.flat().every(Number.isFinite));
}

/** The numbers of the whole molecule before those of its atoms, as there may be room for few. */
export function wholeFirst(/** @type {ViewContent["fields"]} */ fields) {
  return Object.fromEntries(Object.entries(fields).sort(([, a], [, b]) => a.data.length - b.data.length));
}

/** The view: the molecule turns as the input does. */
export function createView(el, state) {
  const [picture, numbers] = [h("div", { class: "view forces" }), h("div", { class: "view" })];
  el.append(picture, numbers);
  const cloud = points.createView(picture, state);
  const table = values.createView(numbers, state);

  function set(/** @type {ViewContent} */ content) {
    const forces = forcesOf(content);
    show(picture, forces.length > 0);
    if (forces.length) cloud.set({ ...content, fields: content.inputs ?? {}, forces });
    table.set({ ...content, fields: wholeFirst(content.fields) });
  }

  return { set, destroy: () => (cloud.destroy(), table.destroy(), el.replaceChildren()) };
}
