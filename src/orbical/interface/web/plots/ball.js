/** Rotations in space by their rotation vectors, seen along the three axes: what lies near the
 * plane through the identity is drawn large and on top, so that each view reads as a slice. */

import { colorOf } from "../draw/colors.js";
import { elementAhead, WAYS } from "../draw/orbits.js";
import { LINE, SOFT, haloed, node, round, stroke } from "../draw/svg.js";
import { cross, ring } from "./marks.js";
import { panelGrid } from "./panel_grid.js";

const NAMES = ["rx", "ry", "rz"];
/** The axes across, up and out of the page, of each view. */
const VIEWS = [
  { across: 0, up: 1, out: 2 },
  { across: 0, up: 2, out: 1 },
  { across: 1, up: 2, out: 0 },
];

/** The drawing of a ball for `createOrbitPlot`. */
export function ball(orbit) {
  const points = Array.from({ length: orbit.size }, (_, k) => NAMES.map((name) => Number(orbit.coords[name][k])));
  const off = (p, k) => Math.abs(points[k][VIEWS[p].out]) / 180;
  const order = VIEWS.map((_, p) => [...points.keys()].sort((a, b) => off(p, b) - off(p, a)));
  const placed = (p, vector) => [0.5 + vector[VIEWS[p].across] / 360, 0.5 - vector[VIEWS[p].up] / 360];
  const place = (p, k) => placed(p, points[k]);

  function paint(context, panel, values, range, dark, ramp) {
    const radius = Math.max(Math.min(panel.width / Math.sqrt(orbit.size) / 2.4, 8), 2);
    const rimmed = orbit.size <= 250; // a rim costs as much as the disc
    context.lineWidth = 0.5;
    context.strokeStyle = dark ? "rgba(0, 0, 0, 0.55)" : "rgba(255, 255, 255, 0.65)";
    for (const k of order[panel.p]) {
      const [u, v] = place(panel.p, k);
      const near = 1.15 - 0.6 * off(panel.p, k);
      context.beginPath();
      context.arc(panel.x + u * panel.width, panel.y + v * panel.height, radius * near, 0, 2 * Math.PI);
      context.globalAlpha = Math.max(1.05 - 1.1 * off(panel.p, k), 0.2);
      context.fillStyle = colorOf(values[k], range, dark, ramp);
      context.fill();
      if (rimmed) context.stroke();
    }
    context.globalAlpha = 1;
  }

  function decorate(panel) {
    const [radius, cx, cy] = [panel.width / 2, panel.x + panel.width / 2, panel.y + panel.height / 2];
    const { across, up } = VIEWS[panel.p];
    const center = { cx: round(cx), cy: round(cy), fill: "none" };
    return [
      node("circle", { ...center, r: round(radius), stroke: SOFT, "stroke-width": 0.8 }),
      node("circle", { ...center, r: round(radius / 2), stroke: LINE }),
      stroke(panel.x, cy, panel.x + panel.width, cy),
      stroke(cx, panel.y, cx, panel.y + panel.height),
      haloed(cx + radius + 15, cy, NAMES[across]),
      haloed(cx, panel.y - 13, NAMES[up]),
      ...cross(cx, cy),
    ];
  }

  return panelGrid(orbit, {
    parts: ["", "", ""],
    aspect: 1,
    margin: { left: 8, right: 26, bottom: 8 },
    inner: 22,
    above: 18,
    paint,
    decorate,
    places: (element, position) => VIEWS.map((_, p) => [p, ...placed(p, position.length ? position : points[element])]),
    position: (coords) => (NAMES.every((name) => name in coords) ? NAMES.map((name) => coords[name]) : []),
    mark: (_panel, x, y, look) => ring(x, y, 6, look),
    locate(part, u, v) {
      // Of points that lie on top of each other the one drawn on top is meant.
      let [best, least] = [-1, Infinity];
      for (const k of order[part]) {
        const [pu, pv] = place(part, k);
        const cost = Math.hypot(pu - u, pv - v) + 0.03 * off(part, k);
        if (cost < least) [best, least] = [k, cost];
      }
      return { element: best };
    },
    step(element, key) {
      if (key === "Home") return orbit.identity;
      return key in WAYS ? elementAhead(points, element, WAYS[key]) : null;
    },
  });
}
