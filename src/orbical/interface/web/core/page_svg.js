// The page as one SVG: boxes, text, plots and pixels where they stand. No foreignObject, so every
// program can open it and a canvas can draw it.

import { drawBox, drawPixels, drawText, drawWords, node, backgroundOf } from "./svg_parts.js";
import { standaloneCopy, rounded } from "./svg_copy.js";

const SKIPPED = new Set(["SCRIPT", "STYLE", "DIALOG", "OPTION", "INPUT", "BR"]);
const LEFT_OUT = "[popover]:not(:popover-open), .hidden, [data-transient]";

/** Draw an element and all it holds into an SVG of its size, on the color behind it. */
export function pageSvg(root) {
  const origin = root.getBoundingClientRect();
  const [width, height] = [rounded(origin.width), rounded(origin.height)];
  const svg = node("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` });
  svg.append(node("rect", { width, height, fill: backgroundOf(root) }));
  walk(root, svg, origin);
  return svg;
}

function walk(el, out, origin) {
  const style = getComputedStyle(el);
  const hidden = style.display === "none" || style.visibility === "hidden" || style.opacity === "0";
  if (hidden || SKIPPED.has(el.tagName) || el.matches(LEFT_OUT)) return;
  const box = el.getBoundingClientRect();
  if (!box.width && !box.height && style.display !== "contents") return;
  if (el.tagName === "svg") {
    out.append(standaloneCopy(el, box, origin));
    return;
  }
  drawBox(style, box, out, origin);
  if (el.tagName === "CANVAS" || el.tagName === "IMG") drawPixels(el, style, box, out, origin);
  else if (el.tagName === "SELECT") drawChoice(el, style, box, out, origin);
  else inside(el, style, box, out, origin);
}

/** The children, cut off at the edge where the page cuts them off. */
function inside(el, style, box, out, origin) {
  const into = style.overflowX === "visible" ? out : cutOut(box, origin);
  if (into !== out) out.append(into);
  for (const child of el.childNodes) {
    if (child.nodeType === Node.ELEMENT_NODE) walk(child, into, origin);
    else if (child.nodeType === Node.TEXT_NODE && child.data.trim()) drawText(child, style, into, origin);
  }
}

/** An SVG within the SVG that shows its own box only, in the coordinates of the whole. */
function cutOut(box, origin) {
  const place = [box.left - origin.left, box.top - origin.top, box.width, box.height].map(rounded);
  const [x, y, width, height] = place;
  return node("svg", { x, y, width, height, viewBox: place.join(" ") });
}

function drawChoice(select, style, box, out, origin) {
  const cut = cutOut(box, origin);
  const words = select.selectedOptions[0]?.textContent ?? "";
  drawWords(words, style, box.left + parseFloat(style.paddingLeft), (box.top + box.bottom) / 2, cut, origin);
  out.append(cut);
}
