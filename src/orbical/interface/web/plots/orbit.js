/** Press anywhere and drag; hover to read. Positions are in pixels of the root element. */
import { badToGood } from "../draw/colors.js";
import { better, formatter, precise } from "../draw/format.js";
import { nameOf, orbitOf } from "../draw/orbits.js";
import { anyFinite, atLeast, clamp, colorRange, onlyRounding, rangeOf } from "../draw/scales.js";
import { assign } from "../draw/svg.js";
import { ball } from "./ball.js";
import { createFrame, sayEmpty } from "./frame.js";
import { line } from "./line.js";
import { plane } from "./plane.js";
import { polar } from "./polar.js";
import { slices } from "./slices.js";
import { tiles } from "./tiles.js";
import { createTooltip } from "./tooltip.js";

/** Call `press(x, y, phase, shift)` with phase press, drag or done, and `hover(x, y)` or `hover(null)`. */
export function attachDrag(frame, { press, hover }) {
  const { root } = frame;
  root.style.touchAction = "pan-y"; // the handle alone is dragged up and down: a page scrolls past
  root.style.cursor = "crosshair";
  root.style.userSelect = "none";
  let held = null;
  let corner = null;
  /** @type {[number, number]} */
  let last = [0, 0];
  const local = (event) => {
    // While dragging the page below changes with every move: the corner is asked for once.
    const { left, top } = corner ?? root.getBoundingClientRect();
    last = [event.clientX - left, event.clientY - top];
    return last;
  };
  frame.on(root, "pointerdown", (event) => {
    if (event.button !== 0 || held !== null) return;
    corner = root.getBoundingClientRect();
    held = event.pointerId;
    root.setPointerCapture(held);
    press(...local(event), "press", event.shiftKey);
  });
  frame.on(root, "pointermove", (event) => {
    if (held === null) hover(...local(event));
    else if (event.pointerId === held) press(...local(event), "drag", event.shiftKey);
  });
  const release = (event) => {
    if (event.pointerId !== held) return;
    held = null;
    const at = event.type === "pointerup" ? local(event) : last;
    corner = null;
    press(...at, "done", event.shiftKey);
  };
  frame.on(root, "pointerup", release);
  frame.on(root, "pointercancel", release);
  frame.on(root, "lostpointercapture", release);
  frame.on(root, "pointerleave", () => held === null && hover(null));
}

const NARROWEST = 0.05; // of the whole range: colors spread over less would show noise

/** Layout kind -> drawing; each makes `{ draw, mark, hover, locate, at, step, name }`; curves also `valueAt`. */
const LAYOUTS = { circle: polar, line, plane, slices, ball, tiles };

/** Make the plot of an orbit in `el`; see the members of what is returned. */
export function createOrbitPlot(el, group) {
  const orbit = orbitOf(group);
  const data = {
    /** @type {any[]} */
    models: [],
    values: new Float32Array(0),
    range: [0, 1],
    shades: [0, 1],
    ramp: "sequential",
    beyond: [false, false],
    title: "",
    /** @type {any[]} */
    marks: [],
    /** @type {(value: number) => string} */
    write: String,
    /** @type {(value: number) => string} */
    say: String,
  };
  const kind = orbit.kind === "circle" && group.straight ? "line" : orbit.kind;
  const layout = (LAYOUTS[kind] ?? tiles)(orbit);
  const now = { element: orbit.identity, position: [] };
  /** @type {(move: { element: number, position: number[], done: boolean }) => void} */
  let moved = () => {};
  /** @type {(press: { element: number, value?: number, shift: boolean }) => void} */
  let pressed = () => {};
  /** @type {(place: { element: number } | null) => void} */
  let hovered = () => {};
  let [filled, hover] = [false, null];
  const frame = createFrame(el, paint, { canvas: layout.canvas, name: `orbit-plot orbit-${kind}` });
  const tip = createTooltip(frame.root);

  function paint() {
    if (!filled) return sayEmpty(frame, data.models.length ? "no data" : "");
    layout.draw(frame, data);
    layout.mark(now.element, now.position, frame, data);
    return undefined;
  }

  /** The range of colors: that of the values, or all of the given one where samples are to be compared. */
  function shadesOf({ values, levels, fixed, format }, range) {
    if (fixed) return range;
    const shown = levels ? levels.map((level) => level.values) : [values];
    const of = (m) => shown.flatMap((one) => Array.from(one.subarray(m * orbit.size, (m + 1) * orbit.size)));
    const rows = data.models.map((_, m) => of(m));
    return format === "share" ? atLeast(colorRange(rows), range, NARROWEST) : colorRange(rows);
  }

  /** The name of a place; between elements, the values are those of the nearest. */
  function called(place) {
    const [here, scanned] = [layout.name?.(place), nameOf(orbit, place.element)];
    return here && here !== scanned ? `${here}, scanned at ${scanned}` : scanned;
  }

  function read(place, x, y) {
    const rows = data.models.map((model, m) => ({
      color: model.color,
      name: model.name,
      value: words(m, place.element),
    }));
    tip.show(x, y, called(place), rows, frame.width, frame.height);
  }

  function words(m, element) {
    const at = m * orbit.size + element;
    if (data.levels) return data.levels.map(({ name, values }) => `${name} ${data.say(values[at])}`).join(", ");
    const value = data.say(data.values[at]);
    if (!data.low || !data.high || !Number.isFinite(data.low[at])) return value;
    const ends = [data.low[at], data.high[at]].map((end) => (data.format === "share" ? clamp(end, 0, 1) : end));
    return `${value} [${ends.map(precise(data.format === "px" ? "number" : data.format)).join(", ")}]`;
  }

  function say() {
    const spoken = data.models.map((model, m) => `${model.name} ${words(m, now.element)}`).join(", ");
    const { root } = frame;
    root.setAttribute("aria-valuenow", orbit.cells[now.element]?.[0] ?? 0);
    root.setAttribute("aria-valuetext", `${called(now)}: ${spoken || "no data"}`);
  }

  function go(place, done) {
    const position = place.position ?? [];
    Object.assign(now, { element: place.element, position });
    if (filled && frame.width) layout.mark(now.element, position, frame, data);
    say();
    moved({ element: place.element, position, done });
  }

  function show(place, x, y) {
    if (place?.element !== hover) hovered(place ? { element: place.element } : null);
    hover = place?.element;
    layout.hover(place, frame, data);
    if (place) read(place, x, y);
    else tip.hide();
  }

  attachDrag(frame, {
    press(x, y, phase, shift) {
      const place = filled ? layout.locate(x, y, phase) : null;
      if (phase === "press") layout.hover(null, frame, data);
      if (place) {
        go(place, phase === "done");
        if (phase === "done") pressed({ element: place.element, value: layout.valueAt?.(x, y), shift });
        if (phase !== "done") read(place, x, y);
      }
      if (phase === "done") show(null);
    },
    hover(x, y) {
      show(x === null || !filled ? null : layout.locate(x, y, "hover"), x, y);
    },
  });
  frame.on(frame.root, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !filled) return;
    const element = layout.step(now.element, event.key, event.shiftKey);
    if (element === null || element === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    go({ element, position: [] }, true);
  });
  const ends = { "aria-valuemin": 0, "aria-valuemax": orbit.index.length - 1 };
  assign(frame.root, { role: "slider", tabindex: 0, ...ends, "aria-label": "Position on the orbit" });
  say();

  return {
    /**
     * Give the numbers: `values` of all models and elements, flat; `marks` of the worst cases; where a color shows
     * a number, `levels` `{ name, values }` that stand beside each other, in a row for each model, and the kind of
     * colors, `ramp`.
     */
    set(given) {
      Object.assign(
        data,
        { low: null, high: null, inner: null, levels: null, ramp: "sequential", title: "", marks: [] },
        given,
      );
      data.range = given.range?.every?.(Number.isFinite) ? given.range : rangeOf(data.values);
      if (layout.canvas) data.range = shadesOf(given, data.range);
      if (onlyRounding(data.values, given.rounding)) data.range = [0, given.rounding];
      if (!(data.range[1] > data.range[0])) data.range = [data.range[0], data.range[0] + 1];
      data.shades = badToGood(data.range, given.higherIsBetter);
      const [low, high] = data.range;
      data.beyond = [data.values.some((value) => value < low), data.values.some((value) => value > high)];
      data.write = formatter(given.format, data.range); // in cells, side by side
      data.say = precise(given.format); // by itself
      data.better = better(given.higherIsBetter);
      filled = data.values.length >= orbit.size && anyFinite(data.values);
      frame.root.setAttribute("aria-label", `${data.title || "metric"} along the orbit`);
      frame.redraw();
      say();
    },
    /** Move the handle to an element (-1: the identity), or between elements. */
    mark(element, position = []) {
      const at = element < 0 || element >= orbit.size ? orbit.identity : element;
      Object.assign(now, { element: at, position: position ?? [] });
      if (filled && frame.width) layout.mark(at, now.position, frame, data);
      say();
    },
    onmove: (callback) => (moved = callback),
    /** Hear of the value under the pointer when it is released, where the plot is of curves. */
    onpress: (callback) => (pressed = callback),
    onhover: (callback) => (hovered = callback),
    focus: () => frame.root.focus(),
    destroy: () => frame.destroy(),
  };
}
