/** A small letter as an element of the plane turns and mirrors it, with the arrow of time. */

import { node, polyline } from "../draw/svg.js";

/** The letter F: no turn and no mirror leaves it as it is. */
const LETTER = [
  [
    [-0.5, -0.8],
    [-0.5, 0.8],
    [0.55, 0.8],
  ],
  [
    [-0.5, 0.1],
    [0.3, 0.1],
  ],
];

/** The glyph of an element, centered on 0, or null where the group does not act on the plane or time. */
export function orientation(orbit, element, size) {
  if (size < 12 || (!orbit.plane && !orbit.time)) return null;
  const drawn = node("g", {
    fill: "none",
    "stroke-width": Math.max(size / 14, 1.3),
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  });
  const timed = Boolean(orbit.time);
  const unit = (size / 2) * (timed && orbit.plane ? 0.72 : 0.92);
  const raise = timed && orbit.plane ? -size * 0.16 : 0;
  if (orbit.plane) drawn.append(node("path", { d: letter(orbit.plane.data, element, unit, raise) }));
  const back = timed && Number(orbit.time.data[element]) < 0;
  if (timed) drawn.append(node("path", { d: arrow(back, size, orbit.plane ? size * 0.36 : 0) }));
  return drawn;
}

/** The letter moved by the matrix of the element; upwards is upwards. */
function letter(matrices, element, unit, raise) {
  const [a, b, , c, d] = Array.from(matrices.slice(9 * element, 9 * element + 6));
  const moved = (/** @type {number[]} */ [x, y]) => [(a * x + b * y) * unit, raise - (c * x + d * y) * unit];
  return LETTER.map((line) => polyline(line.map(moved))).join("");
}

/** Time runs to the right, or back. */
function arrow(back, size, y) {
  const [half, head] = [size * 0.36, size * 0.12];
  const tip = back ? -half : half;
  const inner = tip + (back ? head : -head);
  return (
    polyline([
      [-half, y],
      [half, y],
    ]) +
    polyline([
      [inner, y - head],
      [tip, y],
      [inner, y + head],
    ])
  );
}
