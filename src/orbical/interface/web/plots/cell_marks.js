/** Marks that are seen on dark and on light cells: white over black. */

import { node, round, stroke } from "../draw/svg.js";

/** Draw the same thing twice, wide and dark below, narrow and light above. */
function outlined(make, width = 1.5) {
  return [
    make({ stroke: "#000000", "stroke-width": width + 2, "stroke-opacity": 0.75, fill: "none" }),
    make({ stroke: "#ffffff", "stroke-width": width, fill: "none" }),
  ];
}

/** The cross of the identity. */
export function cross(x, y, size = 4) {
  const path = `M${round(x - size)} ${round(y)}h${2 * size}M${round(x)} ${round(y - size)}v${2 * size}`;
  return outlined((look) => node("path", { d: path, ...look }), 1.2);
}

/** A ring around a place; dashed where the pointer only hovers. */
export function ring(x, y, radius, look) {
  const [dash, width] = look === "hover" ? ["3 2", 1] : [null, 2];
  const place = { cx: round(x), cy: round(y), r: radius };
  return outlined((each) => node("circle", { ...place, "stroke-dasharray": dash, ...each }), width);
}

/** A rectangle around a cell. */
export function cellRim(x, y, width, height, look) {
  const place = { x: round(x), y: round(y), width: round(width), height: round(height) };
  const [dash, line] = look === "hover" ? ["3 2", 1] : [null, 2];
  return outlined((each) => node("rect", { ...place, "stroke-dasharray": dash, ...each }), line);
}

/** Hairlines across a panel through a place. */
export function crosshair({ x, y, width, height }, px, py) {
  return outlined(
    (each) =>
      node(
        "g",
        {},
        stroke(x, py, x + width, py, { ...each, "stroke-width": each["stroke-width"] / 2, "stroke-opacity": 0.7 }),
        stroke(px, y, px, y + height, { ...each, "stroke-width": each["stroke-width"] / 2, "stroke-opacity": 0.7 }),
      ),
    1.4,
  );
}
