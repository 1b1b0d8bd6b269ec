// A volume [channels, depth, height, width] as three slices, each chosen by a slider; of large ones, the middle slices.
// An event `slices` says where they are, so that the predictions are shown there too.

import { h, show, write } from "../core/dom.js";
import { createView as createImage, valueRange } from "./image.js";

/** @import { Field, ViewContent } from "./index.js" */

const AXES = ["depth", "row", "column"];

/** Slices of a volume in one picture whose axes line up: row x column, right of it row x depth, below depth x column. */
export function slicePicture(
  /** @type {Field} */ { data, shape, dtype },
  /** @type {number[]} */ [front, level, side],
) {
  const [channels, depth, rows, columns] = shape;
  const [height, width] = [rows + 1 + depth, columns + 1 + depth];
  const picture = new Float32Array(channels * height * width).fill(NaN);
  for (let c = 0; c < channels; c++) {
    const at = (k, j, i) => data[((c * depth + k) * rows + j) * columns + i];
    const draw = (row, column, value) => (picture[(c * height + row) * width + column] = value);
    for (let j = 0; j < rows; j++) {
      for (let i = 0; i < columns; i++) draw(j, i, at(front, j, i));
      for (let k = 0; k < depth; k++) draw(j, columns + 1 + k, at(k, j, side));
    }
    for (let k = 0; k < depth; k++) for (let i = 0; i < columns; i++) draw(rows + 1 + k, i, at(k, level, i));
  }
  return { data: picture, shape: [channels, height, width], dtype };
}

/** The view: the slices stay where they were put as the volume moves. */
export function createView(el) {
  const image = createImage(el);
  const sliders = AXES.map((axis) =>
    h("input", {
      type: "range",
      min: 0,
      "aria-label": `${axis} of the slice`,
      oninput: () => moved(false),
      onchange: () => moved(true),
    }),
  );
  const counts = AXES.map(() => h("output"));
  const rows = AXES.map((axis, i) => h("label", {}, h("span", {}, axis), sliders[i], counts[i]));
  const controls = h("div", { class: "slice-controls", hidden: true }, rows);
  el.append(controls);
  let shown = null;
  let sides = [];

  const placesOf = () => sliders.map((slider) => Number(slider.value));

  function moved(done) {
    draw();
    el.dispatchEvent(new CustomEvent("slices", { bubbles: true, detail: { places: placesOf(), done } }));
  }

  function draw() {
    const [name, field] = shown.field;
    const places = placesOf();
    places.forEach((place, i) => write(counts[i], `${place + 1} of ${sides[i]}`));
    const range = shown.content.about?.range?.[name] ?? valueRange(field);
    image.set({
      ...shown.content,
      fields: { [name]: slicePicture(field, places) },
      about: { range: { [name]: range } },
    });
  }

  function set(/** @type {ViewContent} */ content) {
    const field = Object.entries(content.fields).find(([, { shape }]) => shape.length === 4);
    show(controls, Boolean(field));
    if (!field) return image.set(content);
    sides = field[1].shape.slice(1);
    sliders.forEach((slider, i) => {
      slider.max = String(sides[i] - 1);
      slider.value = String(content.slices?.[i] ?? Math.floor(sides[i] / 2));
    });
    shown = { field, content };
    draw();
  }

  return { set, destroy: () => image.destroy() };
}
