/** Rotations in space by three planes of axes: direction is the axis, radius the angle. */

import { pixelRatio } from "../draw/canvas.js";
import { h } from "../core/dom.js";
import { paintHeatmap, nearestSorted, nearestTurn, polarCells, polarPlace } from "../draw/heatmap.js";
import { WAYS } from "../draw/orbits.js";
import { clamp } from "../draw/scales.js";
import { SOFT, label, node, round } from "../draw/svg.js";
import { cross, ring } from "./marks.js";
import { panelGrid } from "./panel_grid.js";

/** The drawing of slices for `createOrbitPlot`. */
export function slices(orbit) {
  const planes = Array.from(orbit.axes.plane, String);
  const azimuths = Array.from(orbit.axes.azimuth, Number);
  const angles = Array.from(orbit.axes.angle, Number);
  const [A, R] = [azimuths.length, angles.length];
  const most = angles[R - 1];
  const elementOf = (p) => (a, r) => orbit.index[(p * A + a) * R + r];
  /** @type {Record<string, any>} */
  const made = { side: 0, cells: [], picture: null, pixels: null };
  let now = [0, 0, 0];

  /** Which element each pixel shows, worked out once for a size. */
  function prepare(side) {
    if (made.side === side) return;
    const picture = h("canvas", { width: side, height: side });
    const pixels = picture.getContext("2d").createImageData(side, side);
    Object.assign(made, {
      side,
      picture,
      pixels,
      cells: planes.map((_, p) => polarCells(side, azimuths, angles, elementOf(p))),
    });
  }

  function paint(context, panel, values, range, dark, ramp) {
    prepare(Math.max(Math.round(panel.width * pixelRatio()), 8));
    paintHeatmap(made.pixels.data, made.cells[panel.p], values, range, dark, ramp);
    made.picture.getContext("2d").putImageData(made.pixels, 0, 0);
    context.save();
    context.beginPath();
    context.arc(panel.x + panel.width / 2, panel.y + panel.height / 2, panel.width / 2, 0, 2 * Math.PI);
    context.clip();
    context.drawImage(made.picture, panel.x, panel.y, panel.width, panel.height);
    context.restore();
  }

  function decorate(panel) {
    const [radius, cx, cy] = [panel.width / 2, panel.x + panel.width / 2, panel.y + panel.height / 2];
    const [across, up] = [...planes[panel.p]];
    const at = (angle, out = 0) => round((radius * angle) / most + out);
    const center = { cx: round(cx), cy: round(cy) };
    const rimLook = { fill: "none", stroke: SOFT, "stroke-width": 0.8 };
    const drawn = [90, 180]
      .filter((angle) => angle <= most)
      .map((angle) =>
        node("circle", {
          ...center,
          r: at(angle),
          ...(angle === most ? rimLook : { ...rimLook, stroke: "#ffffff", "stroke-opacity": 0.55 }),
        }),
      );
    drawn.push(label(cx + radius + 8, cy, across), label(cx, cy - radius - 7, up));
    if (most >= 90 && radius > 40) {
      const rim = {
        fill: "#ffffff",
        stroke: "#000000",
        "stroke-width": 2.5,
        "stroke-opacity": 0.6,
        "paint-order": "stroke",
      };
      drawn.push(label(cx + at(90) * 0.707, cy - at(90) * 0.707, "90°", rim));
    }
    drawn.push(...cross(cx, cy));
    return drawn;
  }

  /** Each different place at which an element stands. */
  function places(element) {
    const seen = new Map();
    for (const cell of orbit.cells[element] ?? []) {
      const [p, a, r] = [Math.floor(cell / (A * R)), Math.floor(cell / R) % A, cell % R];
      const [turn, out] = [(azimuths[a] * Math.PI) / 180, angles[r] / most / 2];
      const place = [p, 0.5 + out * Math.cos(turn), 0.5 - out * Math.sin(turn)];
      seen.set(place.map((value) => Math.round(value * 1e4)).join(), place);
    }
    return [...seen.values()];
  }

  function step(element, key) {
    if (orbit.index[(now[0] * A + now[1]) * R + now[2]] !== element) {
      const cell = orbit.cells[element]?.[0] ?? 0;
      now = [Math.floor(cell / (A * R)), Math.floor(cell / R) % A, cell % R];
    }
    if (key === "Home") return orbit.identity;
    if (!(key in WAYS)) return null;
    const [right, up, far] = now[2] === 0 && WAYS[key][0] ? WAYS.ArrowUp : WAYS[key]; // from the center every way is out
    const turn = (at, by, count) => (at - by + count) % count;
    now = [turn(now[0], far, planes.length), turn(now[1], right, A), clamp(now[2] + up, 0, R - 1)];
    return orbit.index[(now[0] * A + now[1]) * R + now[2]];
  }

  return panelGrid(orbit, {
    parts: planes.map((name) => `axis in ${name}`),
    aspect: 1,
    margin: { left: 6, right: 14, bottom: 4 },
    inner: 8,
    above: 13,
    paint,
    decorate,
    places,
    step,
    locate(part, u, v, dragged) {
      const [x, y] = [2 * u - 1, 1 - 2 * v];
      if (!dragged && Math.hypot(x, y) > 1.1) return null;
      const [azimuth, angle] = polarPlace(x, y, most);
      now = [part, nearestTurn(azimuths, azimuth), nearestSorted(angles, angle)];
      return { element: elementOf(part)(now[1], now[2]) };
    },
    mark: (_panel, x, y, look) => ring(x, y, 5, look),
  });
}
