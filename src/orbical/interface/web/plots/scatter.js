/** Samples as points: hover, pick, lasso, zoom; up to a million. */

import { pixelRatio } from "../draw/canvas.js";
import { count as counted } from "../draw/format.js";
import { affine, createPointIndex, toData, toPixels, wholeView } from "../draw/map_layout.js";
import { WAYS } from "../draw/orbits.js";
import { pointOpacity, pointRadius } from "../draw/point_raster.js";
import { assign } from "../draw/svg.js";
import { createFrame, sayEmpty } from "./frame.js";
import { attachGestures, touchable } from "./gestures.js";
import { createGlyphLayer, createPoints, createScatterMarks, glyphSize } from "./scatter_layers.js";

/** Make a scatter plot in `el`; see the members of what is returned. */
export function createScatter(el, { webgl = true } = {}) {
  /** @type {Record<"hover" | "pick" | "lasso", (found: any, how?: string) => void>} */
  const calls = { hover() {}, pick() {}, lasso() {} };
  /** @type {Record<string, any>} */
  const state = { view: null, selected: -1, hovered: -1, lasso: [], mode: "select", busy: false };
  /** @type {any[]} */
  let [points, buckets, asked, layer, glyphs] = [null, null, 0, null, null];
  const marks = createScatterMarks();
  const frame = createFrame(el, paint, { canvas: true, name: "scatter" });
  layer = createPoints(frame.canvas, webgl);
  frame.on(frame.canvas, "webglcontextlost", (event) => event.preventDefault());
  frame.on(frame.canvas, "webglcontextrestored", () => {
    layer.restore();
    paint();
  });
  assign(frame.root, {
    role: "application",
    tabindex: 0,
    "aria-roledescription": "scatter plot",
    "aria-label": "Map of samples",
  });

  function paint() {
    if (!layer) return;
    const [{ width, height, canvas }, ratio] = [frame, pixelRatio()];
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    if (!buckets) return;
    frame.back.replaceChildren();
    frame.front.replaceChildren(...marks.elements);
    if (!buckets.some) sayEmpty(frame, "no samples");
    const { zoom, x, y } = state.view ?? { zoom: 1 };
    const whole = wholeView(buckets.bounds, width, height, glyphs ? glyphSize(width) / 2 + 4 : undefined);
    state.view = zoom > 1 ? { ...whole, zoom, x, y } : whole;
    touchable(frame.root, state);
    const n = points.xy.length / 2;
    const look = { radius: pointRadius(n, state.view.zoom), opacity: pointOpacity(n) };
    layer.draw({ width, height, ratio, ...affine(state.view), ...look });
    glyphs?.draw(state.view, points);
    marks.name(state, points.labels ?? [], frame.dark);
    overlay();
  }

  function overlay() {
    if (state.view && points) marks.place(state, points.xy);
  }

  function select(i) {
    state.selected = i;
    overlay();
  }

  function later() {
    if (!asked)
      asked = requestAnimationFrame(() => {
        asked = 0;
        paint();
      });
  }

  /** The sample meant at a place: that of a picture there, else the nearest. */
  const at = (x, y) => {
    const pictured = glyphs?.at(x, y) ?? -1;
    return pictured >= 0 ? pictured : nearest(x, y);
  };
  const nearest = (x, y) => (buckets?.some && state.view ? buckets.nearest(...toData(state.view, x, y)) : -1);
  const choose = (i) => {
    if (i >= 0) select(i);
    if (i >= 0) calls.pick(i);
  };
  attachGestures(frame, state, {
    hover(x, y) {
      const found = x === null ? -1 : at(x, y);
      if (found === state.hovered) return;
      state.hovered = found;
      overlay();
      calls.hover(found < 0 ? null : { sample: found, x, y });
    },
    pick: (x, y) => choose(at(x, y)),
    draft(polygon) {
      state.lasso = polygon;
      overlay();
    },
    lasso: (polygon, how) => calls.lasso(polygon, how),
    later,
  });
  frame.on(frame.root, "keydown", (event) => {
    if (event.key === "Escape" && state.lasso.length) {
      state.lasso = [];
      overlay();
      calls.lasso([]);
    } else if (event.key.startsWith("Arrow") && buckets?.some && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      event.stopPropagation();
      const known = state.selected >= 0 && Number.isFinite(points.xy[2 * state.selected]);
      const next = () => buckets.neighbor(state.selected, ...WAYS[event.key]);
      choose(known ? next() : buckets.nearest(state.view.x, state.view.y));
    }
  });

  return {
    /** Points `xy` (flat), `colors` (rgba), `mask` (1 = in the subset) or null, `labels` of classes. */
    set(given) {
      const before = points?.xy;
      points = { mask: null, ...points, labels: [], ...given };
      if (points.xy !== before) {
        buckets = createPointIndex(points.xy);
        buckets.some = points.xy.some(Number.isFinite);
        if (state.hovered >= 0) calls.hover(null); // or its card would stay, wherever the pointer goes
        Object.assign(state, { view: null, hovered: -1 });
      }
      points.colors ??= new Uint8Array(2 * points.xy.length).fill(128);
      layer.set(points);
      frame.root.setAttribute(
        "aria-label",
        `Map of ${counted(points.xy.length / 2)} samples; use the arrow keys to select a neighboring sample`,
      );
      if (frame.width) paint();
    },
    select,
    setMode(mode) {
      state.mode = mode;
      frame.root.style.cursor = mode === "lasso" ? "crosshair" : "default";
      touchable(frame.root, state);
    },
    /** While a map is computed the points that are shown can be looked at, and not circled. */
    setBusy(busy) {
      state.busy = busy;
      frame.root.toggleAttribute("data-busy", busy);
    },
    setLasso(polygon) {
      state.lasso = Array.from(polygon ?? []);
      overlay();
    },
    /** Draw pictures of some samples at their places, or none: see `createGlyphLayer`. */
    setGlyphs(pictures) {
      glyphs?.destroy();
      glyphs = pictures ? createGlyphLayer(frame, pictures) : null;
      if (frame.width) paint();
    },
    /** Where a sample is drawn, in pixels of the plot. */
    place: (i) => (state.view ? toPixels(state.view, points.xy[2 * i], points.xy[2 * i + 1]) : null),
    onhover: (callback) => (calls.hover = callback),
    onpick: (callback) => (calls.pick = callback),
    onlasso: (callback) => (calls.lasso = callback),
    focus: () => frame.root.focus(),
    kind: () => layer.kind,
    repaint: paint,
    destroy() {
      cancelAnimationFrame(asked);
      glyphs?.destroy();
      layer.destroy();
      frame.destroy();
    },
  };
}
