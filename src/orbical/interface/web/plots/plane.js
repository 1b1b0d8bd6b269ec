/** A plane of shifts: a heat map for each model, upwards is upwards. */

import { h } from "../core/dom.js";
import { short } from "../draw/format.js";
import { paintHeatmap } from "../draw/heatmap.js";
import { nameOf, WAYS } from "../draw/orbits.js";
import { clamp, edges, linear, nearestPlace, ticks } from "../draw/scales.js";
import { INK, SOFT, label, node, round, stroke, textWidth } from "../draw/svg.js";
import { cross, crosshair, ring } from "./marks.js";
import { panelGrid } from "./panel_grid.js";

/** The drawing of a plane for `createOrbitPlot`. */
export function plane(orbit) {
  const [[vertical, rows], [across, columns]] = Object.entries(orbit.axes).map(([name, values]) => [
    name,
    Array.from(values, Number),
  ]);
  const [height, width] = [rows.length, columns.length];
  const [down, along] = [edges(rows), edges(columns)];
  const u = linear([along[0], along.at(-1)], [0, 1]);
  const v = linear([down[0], down.at(-1)], [0, 1]);
  const cells = Int32Array.from(orbit.index);
  const picture = h("canvas", { width, height });
  const brush = picture.getContext("2d");
  const pixels = brush.createImageData(width, height);
  const [low, high] = [Math.min(...rows), Math.max(...rows)];
  const [left, right] = [Math.min(...columns), Math.max(...columns)];

  const unit = orbit.unit ? ` in ${orbit.unit}` : "";

  /** Round values; where there is room for few, the middle and both ends. */
  function marksOf(from, to, pixels) {
    if (pixels > 110) return ticks(from, to, pixels > 150 ? 5 : 3);
    return from < 0 && to > 0 ? [from, 0, to] : [from, to];
  }

  function paint(context, panel, values, range, dark, ramp) {
    paintHeatmap(pixels.data, cells, values, range, dark, ramp);
    brush.putImageData(pixels, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, panel.x, panel.y, panel.width, panel.height);
  }

  function decorate(panel) {
    const x = linear(u.domain, [panel.x, panel.x + panel.width]);
    const y = linear(v.domain, [panel.y, panel.y + panel.height]);
    const bottom = panel.y + panel.height;
    const rim = { x: round(panel.x), y: round(panel.y), width: round(panel.width), height: round(panel.height) };
    const drawn = [node("rect", { ...rim, fill: "none", stroke: SOFT, "stroke-width": 0.7 })];
    for (const value of marksOf(left, right, panel.width)) {
      drawn.push(stroke(x(value), bottom, x(value), bottom + 4, { stroke: SOFT }));
      if (panel.last) drawn.push(label(x(value), bottom + 12, short(value)));
    }
    for (const value of marksOf(low, high, panel.height)) {
      drawn.push(stroke(panel.x - 4, y(value), panel.x, y(value), { stroke: SOFT }));
      if (panel.first) drawn.push(label(panel.x - 7, y(value), short(value), { "text-anchor": "end" }));
    }
    if (panel.last) drawn.push(label(panel.x + panel.width / 2, bottom + 26, across + unit, { fill: INK }));
    if (panel.first) {
      const [px, py] = [round(panel.x - margin.left + 8), round(panel.y + panel.height / 2)];
      drawn.push(label(px, py, vertical + unit, { fill: INK, transform: `rotate(-90 ${px} ${py})` }));
    }
    const [row, column] = [Math.floor(orbit.cells[orbit.identity][0] / width), orbit.cells[orbit.identity][0] % width];
    drawn.push(...cross(x(columns[column]), y(rows[row])));
    return drawn;
  }

  const widest = Math.max(...[...ticks(low, high, 5), low, high].map((value) => textWidth(short(value))));
  const margin = { left: Math.ceil(widest) + 26, right: 4, bottom: 34 };
  const cellOf = (element) => orbit.cells[element]?.[0] ?? 0;

  return panelGrid(orbit, {
    parts: [""],
    aspect: Math.abs((down.at(-1) - down[0]) / (along.at(-1) - along[0])),
    margin,
    innerBottom: 0,
    paint,
    decorate,
    locate(_part, pu, pv) {
      const dx = clamp(u.invert(clamp(pu, 0, 1)), left, right);
      const dy = clamp(v.invert(clamp(pv, 0, 1)), low, high);
      return {
        element: orbit.index[nearestPlace(rows, dy) * width + nearestPlace(columns, dx)],
        position: across === "dx" ? [dx, dy] : [],
      };
    },
    places(element, position) {
      const cell = cellOf(element);
      const [x, y] = position.length === 2 ? position : [columns[cell % width], rows[Math.floor(cell / width)]];
      return [[0, u(x), v(y)]];
    },
    position: (coords) => (across in coords && vertical in coords ? [coords[across], coords[vertical]] : []),
    mark(panel, x, y, look) {
      return look === "hover" ? ring(x, y, 5, look) : [...crosshair(panel, x, y), ...ring(x, y, 7, look)];
    },
    step(element, key, shift) {
      const [cell, leap] = [cellOf(element), shift ? 5 : 1];
      if (key === "Home") return orbit.identity;
      if (key === "End") return orbit.index[orbit.index.length - 1];
      if (!(key in WAYS)) return null;
      const [right, up, far] = WAYS[key];
      const row = clamp(Math.floor(cell / width) - leap * up - 5 * far, 0, height - 1);
      return orbit.index[row * width + clamp((cell % width) + leap * right, 0, width - 1)];
    },
    name({ element, position }) {
      if (position?.length !== 2) return nameOf(orbit, element);
      const [dx, dy] = position.map((value) => short(Number(value.toFixed(1))));
      return `dx ${dx}, dy ${dy}`;
    },
  });
}
