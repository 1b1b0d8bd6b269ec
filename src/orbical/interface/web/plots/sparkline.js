/** A curve along the orbit in the height of a line of text. */

import { orbitOf } from "../draw/orbits.js";
import { clamp } from "../draw/scales.js";
import { LINE, SOFT, assign, node, polyline, stroke } from "../draw/svg.js";
import { createGlyph } from "./glyph.js";

const CURVES = ["circle", "line"];
const [WIDE, HIGH, RIM] = [48, 22, 2];

/**
 * Make a sparkline, or a small map where color shows numbers: `{ element, set({ model, values, range,
 * ramp, higherIsBetter }), mark(element) }`, `values` one for each element of the orbit.
 * @param {any} group
 * @returns {{ element: Element, set: (given: any) => void, mark: (element: number) => void }}
 */
export function createSparkline(group) {
  if (!CURVES.includes(group.kind)) return map(group);
  const orbit = orbitOf(group);
  const last = Math.max(orbit.index.length - 1, 1);
  const x = (i) => RIM + ((WIDE - 2 * RIM) * i) / last;
  const curve = node("path", { fill: "none", "stroke-width": 1.6, "stroke-linejoin": "round" });
  const zero = stroke(0, 0, WIDE, 0);
  const here = stroke(0, 0, 0, HIGH, { stroke: SOFT });
  const element = node("svg", { class: "sparkline", width: WIDE, height: HIGH, "aria-hidden": "true" });
  element.append(zero, here, curve);
  return {
    element,
    set({ model, values, range }) {
      const [low, high] = range;
      const y = (value) => HIGH - RIM - (HIGH - 2 * RIM) * clamp((value - low) / (high - low), 0, 1);
      const points = Array.from(orbit.index, (k, i) => [x(i), y(values[k])]).filter(([, at]) => Number.isFinite(at));
      assign(curve, { d: polyline(points), stroke: model.color });
      assign(zero, { y1: y(0), y2: y(0), stroke: LINE });
    },
    mark(at) {
      const place = x(orbit.cells[at]?.[0] ?? 0);
      assign(here, { x1: place, x2: place });
    },
  };
}

function map(group) {
  const glyph = createGlyph(group, 26);
  let last = null;
  return {
    element: glyph.element,
    set({ model, ...given }) {
      last = { models: [model], ...given };
    },
    mark: (element) => last && glyph.set({ ...last, mark: element }),
  };
}
