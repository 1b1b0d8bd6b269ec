/** The frame of every plot: an SVG (over a canvas), its size, its theme, its tooltip, its end. */

import { onAppearance } from "../draw/canvas.js";
import { isDark } from "../draw/colors.js";
import { label, node } from "../draw/svg.js";

/** Make a frame that fills `el`; `draw(frame)` is called whenever size or look has changed. */
export function createFrame(el, draw, { canvas = false, name = "plot" } = {}) {
  const ending = new AbortController();
  const root = document.createElement("div");
  root.className = `plot ${name}`;
  Object.assign(root.style, {
    position: "relative",
    width: "100%",
    height: "100%",
    minHeight: "80px",
    contain: "strict", // what changes inside, such as the tooltip, moves nothing outside
  });
  /** @type {any} */ // null only for plots that ask for none
  const surface = canvas ? document.createElement("canvas") : null;
  const svg = node("svg", { "aria-hidden": "true" });
  for (const layer of [surface, svg]) {
    if (!layer) continue;
    Object.assign(layer.style, { position: "absolute", left: "0", top: "0", display: "block" });
    root.append(layer);
  }
  const back = node("g");
  const front = node("g");
  svg.append(back, front);
  el.append(root);

  const frame = {
    root,
    svg,
    canvas: surface,
    back,
    front,
    signal: ending.signal,
    width: 0,
    height: 0,
    dark: false,
    /** Draw again, as soon as there is a size. */
    redraw() {
      if (frame.width < 10 || frame.height < 10) return;
      frame.dark = isDark(root);
      draw(frame);
    },
    /** Listen until the plot ends. */
    on(target, type, listener, options = {}) {
      target.addEventListener(type, listener, { ...options, signal: ending.signal });
    },
    destroy() {
      ending.abort();
      watcher.disconnect();
      root.remove();
    },
  };
  const resize = (width, height) => {
    if (width === frame.width && height === frame.height) return false;
    Object.assign(frame, { width, height });
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`); // on paper it is scaled
    return true;
  };
  const watcher = new ResizeObserver(([{ contentRect }]) => {
    if (resize(contentRect.width, contentRect.height)) frame.redraw();
  });
  watcher.observe(root);
  resize(root.clientWidth, root.clientHeight);
  onAppearance(() => frame.redraw(), ending.signal);
  return frame;
}

/** Say in the middle of a plot that there is nothing to draw. */
export function sayEmpty(frame, words = "no data") {
  frame.back.replaceChildren(label(frame.width / 2, frame.height / 2, words, { "font-size": 13 }));
  frame.front.replaceChildren();
  frame.canvas?.getContext("2d")?.clearRect(0, 0, frame.canvas.width, frame.canvas.height);
}
