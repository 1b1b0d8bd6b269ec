// A signal [channels, time] as lines: between the lowest and the highest value of each column of pixels.

import { fill, h } from "../core/dom.js";
import { short } from "../draw/format.js";
import { INK, LINE, label, node, polyline, stroke } from "../draw/svg.js";

/** @import { ViewContent } from "./index.js" */

const WIDTH = 210;
const HEIGHT = 180;
const MARGIN = 14;
const MOST = 6; // channels

/** The lowest and the highest value in each of at most `columns` stretches of a signal. */
export function envelope(values, columns) {
  const count = Math.min(columns, values.length);
  return Array.from({ length: count }, (_, column) => {
    const start = Math.floor((column * values.length) / count);
    const stop = Math.max(start + 1, Math.floor(((column + 1) * values.length) / count));
    const part = Array.from(values.subarray(start, stop)).filter(Number.isFinite);
    return part.length ? [Math.min(...part), Math.max(...part)] : [NaN, NaN];
  });
}

/** The points of a line through an envelope: of one value in a column that value, else down and up. */
export function lineOf(ends, x, y) {
  return ends.flatMap(([low, high], column) => [...new Set([low, high])].map((end) => [x(column), y(end)]));
}

/** The view: the first field with two dimensions is the signal. */
export function createView(el) {
  const plot = node("svg", { class: "signal", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  Object.assign(plot.style, { width: "100%", height: "100%", minHeight: "90px" });
  el.append(h("div", { class: "pixels-holder" }));
  el.lastChild.append(plot);
  let kept = { key: NaN, low: 0, high: 0 };

  /** One range for the whole orbit of a sample, so that a gain is seen as one. */
  function steady(key, ends) {
    if (kept.key !== key) kept = { key, low: 0, high: 0 };
    for (const [low, high] of ends.flat()) {
      kept.low = Math.min(kept.low, Number.isFinite(low) ? low : 0);
      kept.high = Math.max(kept.high, Number.isFinite(high) ? high : 0);
    }
    return kept.high > kept.low ? [kept.low, kept.high] : [kept.low - 1, kept.high + 1];
  }

  function set(/** @type {ViewContent} */ { fields, place }) {
    const found = Object.values(fields).find(({ shape }) => shape.length >= 2);
    if (!found) return;
    const length = found.shape[found.shape.length - 1];
    const channels = Math.min(found.data.length / length, MOST);
    const columns = length > 4 * WIDTH ? WIDTH - 2 * MARGIN : length;
    const ends = Array.from({ length: channels }, (_, c) =>
      envelope(found.data.subarray(c * length, (c + 1) * length), columns),
    );
    const [low, high] = steady(place.sample, ends);
    const each = (HEIGHT - 2 * MARGIN) / channels;
    const x = (column) => MARGIN + (column * (WIDTH - 2 * MARGIN)) / Math.max(ends[0].length - 1, 1);
    const parts = ends.flatMap((one, c) => {
      const y = (value) => MARGIN + each * (c + (high - value) / (high - low));
      const path = { d: polyline(lineOf(one, x, y)), fill: "none", stroke: INK, "stroke-width": 1 };
      return [stroke(MARGIN, y(0), WIDTH - MARGIN, y(0), { stroke: LINE }), node("path", path)];
    });
    const text = { "text-anchor": "start", "font-size": 9 };
    fill(
      plot,
      ...parts,
      label(MARGIN, MARGIN / 2, short(high), text),
      label(MARGIN, HEIGHT - MARGIN / 2, short(low), text),
      label(WIDTH - MARGIN, HEIGHT - MARGIN / 2, `${length} samples`, { ...text, "text-anchor": "end" }),
    );
    plot.setAttribute("aria-label", `signal at ${place.name}, from ${short(low)} to ${short(high)}`);
  }

  return { set, destroy: () => el.replaceChildren() };
}
