/** A shape for each model, so that hue is never the only sign. */
import { node, PANEL, round, stroke } from "../draw/svg.js";

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

const DIAMOND = 3;

/** A filled diamond in the color of the model, for curves. */
export function worstOnCurve(x, y, color, { small, title }) {
  const look = small ? { "fill-opacity": 0.55, "stroke-width": 0.5 } : {};
  const drawn = marker(DIAMOND, x, y, small ? 2.5 : 5.5, color, { class: "worst-mark", ...look });
  drawn.append(node("title", {}, title));
  return drawn;
}

/** A diamond that is seen on dark and on light cells. */
export function worstOnCells(x, y, { small, title }) {
  const r = small ? 2.5 : 6;
  const d = `M0 ${-r}L${r} 0L0 ${r}L${-r} 0Z`;
  const line = small ? 1 : 2;
  return node(
    "g",
    { class: "worst-mark", transform: `translate(${round(x)} ${round(y)})` },
    node("path", { d, fill: "none", stroke: "#000000", "stroke-width": line + 2, "stroke-opacity": 0.75 }),
    node("path", { d, fill: "#ffffff", "fill-opacity": small ? 0.8 : 0, stroke: "#ffffff", "stroke-width": line }),
    node("title", {}, title),
  );
}

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
