/** A circle of rotations: zero upwards, counter-clockwise, as the figures have it. */

import { dashOf } from "../draw/colors.js";
import { degrees, short } from "../draw/format.js";
import { angleAt, betweenAngles, nameOf, nearestAngle, placeAt, turned } from "../draw/orbits.js";
import { clamp, linear, rings, stepAlong } from "../draw/scales.js";
import { bandsOf } from "../draw/quantiles.js";
import {
  INK,
  LINE,
  PANEL,
  SOFT,
  assign,
  firstFitting,
  haloed,
  label,
  node,
  polyline,
  round,
  stroke,
} from "../draw/svg.js";
import { worstOnCurve } from "./marks.js";

const [LABELS, CAPTION, HANDLE] = [26, 18, 8];

/** The drawing of a circle for `createOrbitPlot`. */
export function polar(orbit) {
  const even = () => orbit.index.map((_, i) => (360 * i) / orbit.index.length);
  const name = orbit.axes.angle || orbit.coords.angle ? "angle" : Object.keys(orbit.coords)[0];
  const angles = Array.from(orbit.axes.angle ?? orbit.coords.angle ?? even(), Number);
  const center = [0, 0];
  let [radius, scale] = [0, linear([0, 1], [0, 1])];
  /** @type {any[]} */
  let [handle, dots, pointer] = [null, [], null];

  function draw(frame, data) {
    const parts = [];
    const caption = data.title ? CAPTION : 2;
    const high = frame.height - caption;
    radius = Math.max(Math.min((frame.width - 2 * LABELS) / 2 - 12, (high - 2 * LABELS + 8) / 2), 10);
    center[0] = frame.width / 2;
    center[1] = high / 2;
    scale = linear([data.range[0], data.range[1] + 0.03 * (data.range[1] - data.range[0])], [0, radius]);
    parts.push(...web(data));
    data.models.forEach((model, m) => parts.push(...curve(data, model, m)));
    parts.push(identityMark(), ...data.marks.map((mark) => worst(data, mark)));
    if (data.title) {
      const better = data.better ? ` (${data.better})` : "";
      const wordings = [`radius: ${data.title}${better}`, `${data.title}${better}`, data.title];
      const below = Math.min(frame.height, center[1] + radius + LABELS + CAPTION) - CAPTION / 2;
      const line = label(frame.width / 2, below, firstFitting(wordings, frame.width - 8));
      line.append(node("title", {}, wordings[0]));
      parts.push(line);
    }
    frame.back.replaceChildren(...parts);
    frame.front.replaceChildren(...makeHandle(data));
  }

  const circle = (r, look, ...children) =>
    node("circle", { cx: round(center[0]), cy: round(center[1]), r: round(r), ...look }, ...children);

  function web(data) {
    const lines = rings(...data.range, radius < 70 ? 2 : 4).map((value) =>
      circle(scale(value), { fill: "none", stroke: LINE }),
    );
    for (let angle = 0; angle < 360; angle += radius < 50 ? 90 : 45) {
      lines.push(stroke(...center, ...placeAt(angle, radius, ...center)));
      const aside = 17 + 6 * Math.abs(Math.sin((angle * Math.PI) / 180)); // words are wide: clear of the handle
      lines.push(label(...placeAt(angle, radius + aside, ...center), `${angle}°`));
    }
    return lines;
  }

  function radialLabels(data) {
    return rings(...data.range, radius < 70 ? 2 : 4).map((value) =>
      haloed(...placeAt(22.5, scale(value), ...center), short(value)),
    );
  }

  function ringOf(values, m) {
    return Array.from(orbit.index, (element) => values[m * orbit.size + element]);
  }

  function trace(ring) {
    return ring.map((value, i) => placeAt(angles[i], clamp(scale(value), 0, radius), ...center));
  }

  function curve(data, model, m) {
    const drawn = [];
    const line = { fill: "none", stroke: model.color };
    for (const { low, high, look } of bandsOf(data, model.color)) {
      const band = polyline(trace(ringOf(high, m)), true) + polyline(trace(ringOf(low, m)), true);
      drawn.push(node("path", { d: band, "fill-rule": "evenodd", ...look }));
    }
    const start = data.values[m * orbit.size + orbit.identity];
    if (Number.isFinite(start) && data.models.length <= 3) {
      const look = { ...line, "stroke-opacity": 0.55, "stroke-dasharray": "1 4", "stroke-linecap": "round" };
      const meaning = node("title", {}, `${model.name}: value at the identity, for comparison`);
      drawn.push(circle(clamp(scale(start), 0, radius), look, meaning));
    }
    const look = {
      ...line,
      "stroke-width": 2,
      "stroke-linejoin": "round",
      "stroke-dasharray": dashOf(model, m) || null,
    };
    drawn.push(node("path", { d: polyline(trace(ringOf(data.values, m)), true), ...look }));
    return drawn;
  }

  function worst(data, mark) {
    const angle = mark.coords[name] ?? angleOf(mark.element);
    const place = placeAt(angle, clamp(scale(mark.value), 0, radius), ...center);
    return worstOnCurve(...place, data.models[mark.m].color, mark);
  }

  function identityMark() {
    const angle = angles[orbit.cells[orbit.identity]?.[0] ?? 0];
    const corner = (turn, out) =>
      placeAt(angle + turn, radius + out, ...center)
        .map(round)
        .join(" ");
    const wide = (4 / radius) * (180 / Math.PI);
    const mark = node("path", { d: `M${corner(0, -1)}L${corner(-wide, 8)}L${corner(wide, 8)}Z`, fill: INK });
    mark.append(node("title", {}, "identity: the original input"));
    return mark;
  }

  function makeHandle(data) {
    const [x, y] = [center[0], center[1] - radius];
    const faint = { stroke: SOFT, "stroke-dasharray": "2 3", visibility: "hidden", "data-transient": "" };
    pointer = stroke(...center, x, y, faint);
    dots = data.models.map((model) => node("circle", { r: 4, fill: model.color, stroke: PANEL, "stroke-width": 1.5 }));
    handle = node(
      "g",
      { class: "orbit-handle" },
      stroke(...center, x, y, { stroke: INK, "stroke-width": 1.5 }),
      node("circle", { cx: x, cy: y, r: HANDLE, fill: INK, stroke: PANEL, "stroke-width": 2 }),
    );
    return [pointer, handle, ...radialLabels(data), ...dots]; // the numbers of the rings are read above the handle
  }

  const angleOf = (element) => angles[orbit.cells[element]?.[0] ?? 0];
  const turn = (angle) => `rotate(${-angle} ${center[0]} ${center[1]})`;

  return {
    draw,
    mark(element, position, _frame, data) {
      if (!handle) return;
      const angle = position.length ? turned(position[0]) : angleOf(element);
      handle.setAttribute("transform", turn(angle));
      dots.forEach((dot, m) => {
        const value = betweenAngles(angles, ringOf(data.values, m), angle);
        const seen = Number.isFinite(value);
        const [x, y] = placeAt(angle, clamp(scale(seen ? value : 0), 0, radius), ...center);
        assign(dot, { cx: round(x), cy: round(y), visibility: seen ? null : "hidden" });
      });
    },
    hover(place) {
      if (!pointer) return;
      assign(pointer, { visibility: place ? null : "hidden", transform: place ? turn(angleOf(place.element)) : null });
    },
    locate(x, y, phase) {
      if (Math.hypot(x - center[0], y - center[1]) < 2) return null;
      const angle = angleAt(x, y, ...center);
      const element = orbit.index[nearestAngle(angles, angle)];
      return { element, position: orbit.continuous && phase !== "hover" ? [angle] : [] };
    },
    valueAt: (x, y) => scale.invert(Math.hypot(x - center[0], y - center[1])),
    step(element, key, shift) {
      const next = stepAlong(orbit.cells[element]?.[0] ?? 0, orbit.index.length, key, { shift, around: true });
      return next === null ? null : orbit.index[next];
    },
    name: (place) => (place.position?.length ? degrees(place.position[0]) : nameOf(orbit, place.element)),
  };
}
