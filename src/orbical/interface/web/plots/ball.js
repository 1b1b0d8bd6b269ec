/** Rotations in space by their rotation vectors, seen along the three axes. */

import { colourOf } from "../draw/colours.js";
import { elementAhead } from "../draw/orbits.js";
import { LINE, SOFT, label, node, round, stroke } from "../draw/svg.js";
import { cross, ring } from "./outline.js";
import { surface } from "./surface.js";

const NAMES = ["rx", "ry", "rz"];
/** Across, up, and towards the reader, of each view. */
const VIEWS = [[0, 1, 2], [0, 2, -2], [1, 2, 1]];

/** The drawing of a ball for `createOrbitPlot`. */
export function ball(orbit) {
  const points = Array.from({ length: orbit.size }, (_, k) => NAMES.map((name) => Number(orbit.coords[name][k])));
  const depth = VIEWS.map(([, , towards]) => (k) => Math.sign(towards || 1) * points[k][VIEW_AXIS(towards)]);
  const order = VIEWS.map((_, p) => [...points.keys()].sort((a, b) => depth[p](a) - depth[p](b)));
  const place = (p, k) => [0.5 + points[k][VIEWS[p][0]] / 360, 0.5 - points[k][VIEWS[p][1]] / 360];

  function paint(context, panel, values, range, dark) {
    const radius = Math.max(Math.min(panel.width / Math.sqrt(orbit.size) / 3.2, 6), 2);
    context.lineWidth = 0.5;
    context.strokeStyle = dark ? "rgba(0, 0, 0, 0.55)" : "rgba(255, 255, 255, 0.65)";
    for (const k of order[panel.p]) {
      const [u, v] = place(panel.p, k);
      // What lies far back is smaller, so that the front is read first.
      const near = 0.8 + 0.25 * (depth[panel.p](k) / 180);
      context.beginPath();
      context.arc(panel.x + u * panel.width, panel.y + v * panel.height, radius * near, 0, 2 * Math.PI);
      context.fillStyle = colourOf(values[k], range, dark);
      context.fill();
      context.stroke();
    }
  }

  function decorate(panel) {
    const [radius, cx, cy] = [panel.width / 2, panel.x + panel.width / 2, panel.y + panel.height / 2];
    const [across, up] = VIEWS[panel.p].map((axis) => NAMES[Math.abs(axis)]);
    return [
      node("circle", { cx: round(cx), cy: round(cy), r: round(radius), fill: "none", stroke: SOFT, "stroke-width": 0.8 }),
      node("circle", { cx: round(cx), cy: round(cy), r: round(radius / 2), fill: "none", stroke: LINE }),
      stroke(panel.x, cy, panel.x + panel.width, cy),
      stroke(cx, panel.y, cx, panel.y + panel.height),
      label(cx, panel.y + panel.height + 9, `${across} → right, ${up} ↑`),
      ...cross(cx, cy),
    ];
  }

  return surface(orbit, {
    parts: ["from rz", "from −ry", "from rx"],
    aspect: 1,
    margin: { left: 8, right: 6, bottom: 20 },
    innerBottom: 18,
    paint,
    decorate,
    places: (element) => VIEWS.map((_, p) => [p, ...place(p, element)]),
    mark: (panel, x, y, look) => ring(x, y, 6, look),
    locate(part, u, v) {
      // Of points that lie on top of each other the one in front is meant.
      let [best, least] = [-1, Infinity];
      for (const k of order[part]) {
        const [pu, pv] = place(part, k);
        const cost = Math.hypot(pu - u, pv - v) - (0.01 * depth[part](k)) / 180;
        if (cost < least) [best, least] = [k, cost];
      }
      return { element: best };
    },
    step(element, key) {
      const ways = { ArrowLeft: [-1, 0, 0], ArrowRight: [1, 0, 0], ArrowUp: [0, 1, 0], ArrowDown: [0, -1, 0], PageUp: [0, 0, 1], PageDown: [0, 0, -1] };
      if (key === "Home") return orbit.identity;
      return key in ways ? elementAhead(points, element, ways[key]) : null;
    },
  });
}

function VIEW_AXIS(towards) {
  return { 2: 2, "-2": 1, 1: 0 }[towards];
}
