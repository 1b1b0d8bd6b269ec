/** A shape for each model, so that hue is never the only sign. */

import { PANEL, node, round } from "../draw/svg.js";

const SHAPES = [
  (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  (r) => `M${-r * 0.9} ${-r * 0.9}H${r * 0.9}V${r * 0.9}H${-r * 0.9}Z`,
  (r) => `M0 ${-r * 1.2}L${r * 1.1} ${r * 0.8}H${-r * 1.1}Z`,
  (r) => `M0 ${-r * 1.3}L${r * 1.3} 0L0 ${r * 1.3}L${-r * 1.3} 0Z`,
  (r) => `M0 ${r * 1.2}L${r * 1.1} ${-r * 0.8}H${-r * 1.1}Z`,
  (r) => plus(0.8 * r, 0.7 * r),
];

/** A plus sign with bars as wide as `a` that stand out by `b`. */
function plus(a, b) {
  return `M${-a / 2} ${-a / 2 - b}h${a}v${b}h${b}v${a}h${-b}v${b}h${-a}v${-b}h${-b}v${-a}h${b}Z`;
}

/** The mark of the model at `place` in the list, with a rim that parts it from others. */
export function marker(place, x, y, size, color, attributes = {}) {
  const shape = SHAPES[place % SHAPES.length](round(size));
  const look = { fill: color, stroke: PANEL, "stroke-width": 1, ...attributes };
  return node("path", { d: shape, transform: `translate(${round(x)} ${round(y)})`, ...look });
}
