/** Elements along a line, such as factors of a scale. */

import { dashOf } from "../draw/colors.js";
import { short } from "../draw/format.js";
import { clamp, isGeometric, linear, logarithmic, nearestPlace, stepAlong } from "../draw/scales.js";
import { bandsOf } from "../draw/quantiles.js";
import { INK, PANEL, SOFT, assign, node, polyline, round, stroke } from "../draw/svg.js";
import { axes, axesBox, ticksFor } from "./axes.js";
import { worstOnCurve } from "./marks.js";

/** The drawing of a line for `createOrbitPlot`. */
export function line(orbit) {
  const [name, given] = Object.entries(orbit.axes)[0] ?? ["element", [...orbit.index.keys()]];
  const places = Array.from(given, Number);
  const n = places.length;
  const ends = [Math.min(...places), Math.max(...places)];
  const geometric = isGeometric(places);
  /** @type {any[]} */
  let [x, y, box, handle, dots, pointer] = [null, null, null, null, [], null];

  function draw(frame, data) {
    const range = spanOf(data);
    const room = 0.03 * (range[1] - range[0]);
    const yTicks = ticksFor(range, frame.height - 50, 26);
    box = axesBox(frame, { top: 12, right: 18, yTicks: yTicks.map(short), yName: Boolean(data.title) });
    const across = [box.left + 6, box.left + box.width - 6];
    x = geometric ? logarithmic(ends, across) : linear(ends, across);
    y = linear([range[0] - room, range[1] + room], [box.top + box.height, box.top]);
    const words = data.better ? `${data.title} (${data.better})` : data.title;
    const frameOf = axes(box, { x, y, xTicks: xTicks(box.width), yTicks, xName: name, yName: words });
    const start = x(places[orbit.cells[orbit.identity]?.[0] ?? 0]);
    const identity = stroke(start, box.top, start, box.top + box.height, { stroke: SOFT, "stroke-width": 1.2 });
    identity.append(node("title", {}, "identity: the original input"));
    const curves = data.models.flatMap((model, m) => curve(data, model, m));
    frame.back.replaceChildren(frameOf, identity, ...curves, ...data.marks.map((mark) => worst(data, mark)));
    frame.front.replaceChildren(...makeHandle(data));
  }

  /** The range of the values with their intervals; one that is wider than all values is cut. */
  function spanOf({ range: [least, most], low, high }) {
    const far = most - least;
    const ends = [...(low ?? []), ...(high ?? [])].filter(Number.isFinite);
    return [Math.max(Math.min(least, ...ends), least - far), Math.min(Math.max(most, ...ends), most + far)];
  }

  function xTicks(width) {
    if (!geometric) return ticksFor(ends, width, 40);
    const doublings = [];
    for (let k = Math.ceil(Math.log2(ends[0]) - 1e-9); 2 ** k <= ends[1] * (1 + 1e-9); k += 1) doublings.push(2 ** k);
    return doublings.length > 1 ? doublings : ticksFor(ends, width, 40);
  }

  /** The height of a value; what lies beyond the range stays at its end. */
  const high = (value) => clamp(y(value), box.top, box.top + box.height);
  const of = (values, m) =>
    Array.from(orbit.index, (element, i) => [x(places[i]), high(values[m * orbit.size + element])]);

  function curve(data, model, m) {
    const drawn = [];
    for (const { low, high, look } of bandsOf(data, model.color)) {
      const whole = [...of(high, m), ...of(low, m).reverse()].filter((point) => point.every(Number.isFinite));
      drawn.push(node("path", { d: polyline(whole, true), ...look }));
    }
    const points = of(data.values, m);
    const look = {
      fill: "none",
      stroke: model.color,
      "stroke-width": 2,
      "stroke-dasharray": dashOf(model, m) || null,
    };
    drawn.push(node("path", { d: polyline(points), ...look }));
    const dots = n > 60 ? [] : points.filter(([, py]) => Number.isFinite(py));
    return [
      ...drawn,
      ...dots.map(([px, py]) => node("circle", { cx: round(px), cy: round(py), r: 2.4, fill: model.color })),
    ];
  }

  function worst(data, mark) {
    const place = mark.coords[name] ?? places[cellOf(mark.element)];
    return worstOnCurve(x(place), high(mark.value), data.models[mark.m].color, mark);
  }

  function makeHandle(data) {
    const bottom = box.top + box.height;
    pointer = stroke(0, box.top, 0, bottom, {
      stroke: SOFT,
      "stroke-dasharray": "2 3",
      visibility: "hidden",
      "data-transient": "",
    });
    dots = data.models.map((model) =>
      node("circle", {
        r: 4.5,
        cx: 0,
        fill: model.color,
        stroke: PANEL,
        "stroke-width": 1.5,
      }),
    );
    const knob = node("circle", { cx: 0, cy: box.top - 2, r: 8, fill: INK, stroke: PANEL, "stroke-width": 2 });
    const stem = stroke(0, box.top, 0, bottom, { stroke: INK, "stroke-width": 1.5 });
    handle = node("g", { class: "orbit-handle" }, stem, knob, ...dots);
    return [pointer, handle];
  }

  const cellOf = (element) => orbit.cells[element]?.[0] ?? 0;
  return {
    draw,
    mark(element, _position, _frame, data) {
      if (!handle) return;
      handle.setAttribute("transform", `translate(${round(x(places[cellOf(element)]))} 0)`);
      dots.forEach((dot, m) => {
        const value = data.values[m * orbit.size + element];
        const seen = Number.isFinite(value);
        assign(dot, { cy: seen ? round(high(value)) : 0, visibility: seen ? null : "hidden" });
      });
    },
    hover(place) {
      const shift = place && x ? `translate(${round(x(places[cellOf(place.element)]))} 0)` : null;
      if (pointer) assign(pointer, { visibility: place ? null : "hidden", transform: shift });
    },
    locate(px) {
      if (!x) return null;
      const scaled = places.map((each) => x(each));
      return { element: orbit.index[nearestPlace(scaled, px)], position: [] };
    },
    valueAt: (_x, py) => y?.invert(py),
    step(element, key, shift) {
      const next = stepAlong(cellOf(element), n, key, { shift });
      return next === null ? null : orbit.index[next];
    },
  };
}
