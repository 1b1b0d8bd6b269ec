// An image [channels, height, width], gray or RGB, every pixel crisp.

import { h, write } from "../core/dom.js";
import { paintPixels } from "../draw/canvas.js";

/** @import { Field, ViewContent } from "./index.js" */

/** Lowest and highest value shown: [0, 1] or [0, 255] where they hold the data, else its range. */
export function valueRange(/** @type {Field} */ { data, dtype }) {
  if (dtype === "u1") return [0, 255];
  let low = Infinity;
  let high = -Infinity;
  for (const value of data) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low >= -1e-3 && high <= 1.001) return [0, 1];
  if (low >= 0 && high <= 255 && high > 2) return [0, 255];
  return high > low ? [low, high] : [low, low + 1];
}

/** Write pixels [channels, height, width] as RGBA. */
export function pixels(array, /** @type {number[]} */ [low, high], out) {
  const [channels, height, width] = array.shape.slice(-3);
  const plane = height * width;
  const factor = 255 / (high - low);
  for (let i = 0; i < plane; i += 1) {
    for (let c = 0; c < 3; c += 1) {
      const value = array.data[Math.min(c, channels - 1) * plane + i];
      out[4 * i + c] = Number.isFinite(value) ? (value - low) * factor : 128;
    }
    out[4 * i + 3] = 255;
  }
}

/** The view: the first field with at least two dimensions is the image. */
export function createView(el) {
  const canvas = h("canvas", { class: "pixels", role: "img", "aria-label": "input image" });
  const note = h("p", { class: "view-note" });
  el.append(h("div", { class: "pixels-holder" }, canvas), note);
  let kept = { key: NaN, range: [0, 1] };

  /** One range for the whole orbit of a sample: the picture must not flicker as it turns. */
  function steady(key, range) {
    if (kept.key !== key) kept = { key, range };
    kept.range = [Math.min(kept.range[0], range[0]), Math.max(kept.range[1], range[1])];
    return kept.range;
  }

  function set(/** @type {ViewContent} */ { fields, place, about }) {
    const first = Object.entries(fields).find(([, field]) => field.shape.length >= 2);
    if (!first) return;
    const [name, found] = first;
    const shape = found.shape.length === 2 ? [1, ...found.shape] : found.shape.slice(-3);
    const given = about?.range?.[name];
    const range = steady(place.sample, given && found.dtype !== "u1" ? given : valueRange(found));
    const [, height, width] = shape;
    paintPixels(canvas, width, height, (rgba) => pixels({ data: found.data, shape }, range, rgba));
    canvas.setAttribute("aria-label", `input at ${place.name}, ${width} by ${height} pixels`);
    const plain = (range[0] === 0 && range[1] === 1) || range[1] === 255;
    write(note, plain ? "" : `values ${range[0].toFixed(2)} (black) to ${range[1].toFixed(2)} (white)`);
  }

  return { set, destroy: () => el.replaceChildren() };
}
