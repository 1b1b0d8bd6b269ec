/** SVG elements, and colors by the page's variables. */

import { distinct, shortened } from "./format.js";

const SPACE = "http://www.w3.org/2000/svg";

export const INK = "var(--ink, #222222)";
export const SOFT = "var(--ink-soft, #5f5f5f)";
export const LINE = "var(--line, #d9d9d9)";
export const PANEL = "var(--panel, #ffffff)";
export const ACCENT = "var(--accent, #0072b2)";
const FONT = "var(--font, system-ui, sans-serif)";
const TEXT_SIZE = 11;

/** An element with attributes and children; attributes that are null are left out. */
export function node(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SPACE, tag);
  assign(made, attributes);
  made.append(...children);
  return made;
}

/** Set attributes; null removes one. */
export function assign(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) element.removeAttribute(name);
    else element.setAttribute(name, value);
  }
}

/** A word at a place: `anchor` start, middle or end; centered on the height `y`. */
export function label(x, y, words, attributes = {}) {
  return node(
    "text",
    {
      x: round(x),
      y: round(y),
      dy: "0.35em",
      "text-anchor": "middle",
      "font-size": TEXT_SIZE,
      "font-family": FONT,
      fill: SOFT,
      ...attributes,
    },
    String(words),
  );
}

/** A word with a rim in the panel's color, readable on top of lines. */
export function haloed(x, y, words, attributes = {}) {
  const rim = { stroke: PANEL, "stroke-width": 3, "stroke-linejoin": "round", "paint-order": "stroke" };
  return label(x, y, words, { ...rim, ...attributes });
}

/** A straight line. */
export function stroke(x1, y1, x2, y2, attributes = {}) {
  const ends = { x1: round(x1), y1: round(y1), x2: round(x2), y2: round(y2) };
  return node("line", { ...ends, stroke: LINE, "stroke-width": 1, ...attributes });
}

/** Path data through points `[x, y]`; a missing point (NaN) breaks the line. */
export function polyline(points, closed = false) {
  let path = "";
  let pen = false;
  let whole = points.length > 0;
  for (const [x, y] of points) {
    if (Number.isFinite(x) && Number.isFinite(y)) {
      path += `${pen ? "L" : "M"}${round(x)} ${round(y)}`;
      pen = true;
    } else {
      pen = false;
      whole = false;
    }
  }
  if (!closed || !path) return path;
  if (whole) return `${path}Z`;
  const [last, first] = [points[points.length - 1], points[0]];
  const joined = [...last, ...first].every(Number.isFinite);
  return joined ? `${path}M${round(last[0])} ${round(last[1])}L${round(first[0])} ${round(first[1])}` : path;
}

/** Two decimals are finer than any screen. */
export function round(value) {
  return Math.round(value * 100) / 100;
}

let ruler = null;

/** The width in pixels of words in the page's font, without asking for a layout. */
export function textWidth(words, size = TEXT_SIZE, weight = 400) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = `${weight} ${size}px system-ui, sans-serif`;
  return ruler.measureText(words).width;
}

/** Words cut with an ellipsis to fit a width. */
export function fitted(words, width, size = TEXT_SIZE) {
  if (textWidth(words, size) <= width) return words;
  let cut = words.length;
  while (cut > 1 && textWidth(`${words.slice(0, cut)}…`, size) > width) cut -= 1;
  return `${words.slice(0, cut).trimEnd()}…`;
}

/** A name without so much of its middle, or of the ends that it shares with others, that it fits a width. */
export function fittedMiddle(name, width, size = TEXT_SIZE, weight = 400, shared = [0, 0]) {
  let most = name.length;
  while (most > 3 && textWidth(shortened(name, most, shared), size, weight) > width) most -= 1;
  return shortened(name, most, shared);
}

/** Names that fit a width; where one does not, only what tells them apart is kept. */
export function fittedNames(names, width, size = TEXT_SIZE) {
  const fit = names.every((name) => textWidth(name, size) <= width);
  return (fit ? names : distinct(names, 0)).map((name) => fittedMiddle(name, width, size));
}

/** The first of several wordings that fits a width; the last is cut. */
export function firstFitting(wordings, width, size = TEXT_SIZE) {
  const found = wordings.find((words) => textWidth(words, size) <= width);
  return found ?? fitted(wordings[wordings.length - 1], width, size);
}
