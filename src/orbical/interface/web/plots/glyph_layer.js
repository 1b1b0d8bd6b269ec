/** Pictures of some samples at their places on a scatter plot, as many as there is room for. */

import { fit } from "../draw/canvas.js";
import { placesOf, spacedOut } from "../draw/glyph_layout.js";
import { clamp } from "../draw/scales.js";

const REST_MS = 90;
const [LEAST, MOST] = [46, 84];

/** The side of a picture on a plot of some width. */
export function glyphSize(width) {
  return Math.round(clamp(width / 9, LEAST, MOST));
}

/** Make the layer over the points of `frame`; `pictures` has `want(samples)` and `of(sample, size)`, a canvas or null. */
export function createGlyphLayer(frame, pictures) {
  const canvas = document.createElement("canvas");
  canvas.className = "glyph-layer";
  Object.assign(canvas.style, { position: "absolute", left: "0", top: "0", pointerEvents: "none" });
  frame.canvas.after(canvas);
  /** @type {number[]} */
  let chosen = [];
  /** @type {{ sample: number, x: number, y: number, half: number }[]} */
  let places = [];
  /** @type {any} */
  let [timer, chosenFor] = [0, []];

  /** Draw what was chosen where it is now; once the view rests, choose anew. */
  function draw(view, { xy, mask }) {
    const size = glyphSize(view.width);
    if (!chosen.length) choose(view, xy, mask, size);
    paint(view, xy, size);
    clearTimeout(timer);
    timer = setTimeout(() => (choose(view, xy, mask, size), paint(view, xy, size)), REST_MS);
  }

  function choose(view, xy, mask, size) {
    const key = [xy, mask, view.x, view.y, view.zoom, view.width, view.height];
    if (key.every((part, k) => part === chosenFor[k])) return;
    chosenFor = key;
    chosen = spacedOut(xy, mask, view, size + 4);
    pictures.want(chosen);
  }

  function paint(view, xy, size) {
    const context = fit(canvas, view.width, view.height);
    places = placesOf(chosen, xy, view).map((place) => ({ ...place, half: size / 2 }));
    for (const { sample, x, y, half } of places) {
      const picture = pictures.of(sample, size);
      if (picture) context.drawImage(picture, x - half, y - half, size, size);
    }
  }

  return {
    draw,
    /** The sample whose picture is at a place, -1 for none. */
    at: (x, y) =>
      places.find((place) => Math.max(Math.abs(place.x - x), Math.abs(place.y - y)) <= place.half)?.sample ?? -1,
    count: () => places.length,
    destroy: () => (clearTimeout(timer), canvas.remove()),
  };
}
