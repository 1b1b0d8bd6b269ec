// The orbits of samples as small pictures for the map: drawn once each, with the input in a corner.

import { h } from "../core/dom.js";
import { paint } from "../core/thumbnails.js";
import { fit, resolve } from "../draw/canvas.js";
import { orbitOf } from "../draw/orbits.js";
import { drawGlyph } from "../plots/glyph.js";

const [PAD, ROUND, CORNER] = [3, 5, 0.34];

/** Make the pictures of a page: `want(samples)`, `of(sample, size)`, and `on(listener)` for when more are there. */
export function createMapGlyphs(app, el) {
  const orbit = orbitOf(app.group);
  const drawn = new Map();
  const listeners = new Set();
  const forget = () => (drawn.clear(), listeners.forEach((listener) => listener()));

  function card(size, found) {
    const canvas = h("canvas", {});
    const context = fit(canvas, size, size);
    context.beginPath();
    context.roundRect(0.5, 0.5, size - 1, size - 1, ROUND);
    context.globalAlpha = 0.85;
    context.fillStyle = resolve(el, "var(--panel, #ffffff)");
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = 1;
    context.strokeStyle = resolve(el, "var(--faint, #c9cfd6)");
    context.stroke();
    context.save();
    context.translate(PAD, PAD);
    const range = found.range?.every(Number.isFinite) ? found.range : null;
    const { higher_is_better: higherIsBetter } = app.sampleMetric();
    const given = { models: app.shown(), values: found.values, range, higherIsBetter, element: el };
    drawGlyph(context, orbit, size - 2 * PAD, given);
    context.restore();
    if (found.picture) corner(context, size * CORNER, found.picture);
    return canvas;
  }

  /** The input, small, in the upper left corner. */
  function corner(context, side, picture) {
    const small = h("canvas", {});
    paint(small, picture);
    const scale = side / Math.max(picture.width, picture.height);
    context.imageSmoothingEnabled = scale < 1;
    context.drawImage(small, 2, 2, picture.width * scale, picture.height * scale);
  }

  const stops = [
    app.thumbnails.on(() => listeners.forEach((listener) => listener())),
    app.store.subscribe(["metric", "reference", "models"], forget),
    app.theme.on(forget),
  ];
  return {
    want: (samples) => app.thumbnails.want(samples),
    of(sample, size) {
      const found = app.thumbnails.get(sample);
      const key = `${sample}@${size}`;
      if (!found?.values) return drawn.get(key) ?? (app.thumbnails.want([sample]), null);
      if (!drawn.has(key)) drawn.set(key, card(size, found));
      return drawn.get(key);
    },
    on: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    destroy: () => stops.forEach((stop) => stop()),
  };
}
