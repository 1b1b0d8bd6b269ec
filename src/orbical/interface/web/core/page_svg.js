// The page as one SVG: boxes, text, plots and pixels where they stand. No foreignObject, so every
// program can open it and a canvas can draw it.
import { setPixelRatio } from "../draw/canvas.js";
import { node, round } from "../draw/svg.js";
import {
  backgroundOf,
  drawBefore,
  drawBox,
  drawPixels,
  drawText,
  drawWords,
  fitting,
  placeOf,
  standaloneCopy,
} from "./svg_parts.js";

const SKIPPED = new Set(["SCRIPT", "STYLE", "DIALOG", "OPTION", "BR"]);
const ARROW = 18; // the room for the arrow of a menu
const LEFT_OUT = "[popover]:not(:popover-open), .hidden, [data-transient]";

/** Draw an element and all it holds into an SVG of its size, on the color behind it. */
export function pageSvg(root) {
  const origin = root.getBoundingClientRect();
  const [width, height] = [round(origin.width), round(origin.height)];
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
  else if (el.tagName === "INPUT") drawField(el, style, box, out, origin);
  else inside(el, style, box, out, origin);
}

/** The children, cut off at the edge where the page cuts them off. */
function inside(el, style, box, out, origin) {
  const into = style.overflowX === "visible" ? out : cutOut(box, origin);
  if (into !== out) out.append(into);
  drawBefore(el, box, into, origin);
  const cut = style.textOverflow === "ellipsis" && el.scrollWidth > el.clientWidth;
  const edge = cut ? box.right - parseFloat(style.paddingRight) : Infinity;
  for (const child of el.childNodes) {
    if (child.nodeType === Node.ELEMENT_NODE) walk(child, into, origin);
    else if (child.nodeType === Node.TEXT_NODE && child.data.trim()) drawText(child, style, into, origin, edge);
  }
}

/** An SVG within the SVG that shows its own box only, in the coordinates of the whole. */
function cutOut(box, origin) {
  const place = placeOf(box, origin);
  return node("svg", { ...place, viewBox: Object.values(place).join(" ") });
}

function drawChoice(select, style, box, out, origin) {
  const cut = cutOut(box, origin);
  const [left, middle] = [box.left + parseFloat(style.paddingLeft) + 4, (box.top + box.bottom) / 2];
  const words = fitting(select.selectedOptions[0]?.textContent ?? "", style, box.right - ARROW + 4 - left);
  drawWords(words, style, left, middle, cut, origin);
  const [x, y] = [box.right - origin.left - ARROW / 2 - 4, middle - origin.top];
  cut.append(node("path", { d: `M${x - 4} ${y - 2}l4 4l4 -4`, fill: "none", stroke: style.color, "stroke-width": 2 }));
  out.append(cut);
}

/** The words in a field, or the sign in a check box. */
function drawField(input, style, box, out, origin) {
  const middle = (box.top + box.bottom) / 2;
  const place = [box.left + parseFloat(style.paddingLeft), middle];
  if (input.type === "checkbox") {
    const [x, y] = [box.left - origin.left, box.top - origin.top];
    const sign = `M${x + 0.22 * box.width} ${y + 0.5 * box.height}l${0.2 * box.width} ${0.22 * box.height}l${0.36 * box.width} ${-0.42 * box.height}`;
    const look = { fill: "none", stroke: getComputedStyle(input, "::before").backgroundColor, "stroke-width": 2 };
    if (input.checked) out.append(node("path", { d: sign, ...look }));
  } else if (["text", "search", "number"].includes(input.type)) {
    const room = box.width - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    drawWords(fitting(input.value || input.placeholder, style, room), style, ...place, out, origin);
  }
}

export const NARROWEST = 240;
export const WIDEST = 8000;
const FLOWING = 1240; // below, the page is a column that is as high as it needs

const nextFrame = () => new Promise(requestAnimationFrame);

/** A width that a figure can have: `shown` where none or none that is possible is asked for. */
export function figureWidth(asked, shown) {
  const width = Math.round(Number(asked));
  return asked !== "" && width >= NARROWEST && width <= WIDEST ? width : Math.round(shown);
}

/** What to set while the figure has another width than on the screen: the page flows, a section keeps its shape. */
function stylesFor(el, root, width) {
  const box = el.getBoundingClientRect();
  if (width === Math.round(box.width)) return [];
  if (el.classList.contains("page")) {
    const style = { width: `${width}px`, maxWidth: "none" };
    return [[root, style], ...(width < FLOWING ? [[el, { height: "auto" }]] : [])];
  }
  const height = Math.round((box.height * width) / box.width);
  const size = { width: `${width}px`, height: `${height}px`, maxWidth: "none", maxHeight: "none" };
  return [[el, { position: "fixed", left: "0", top: "0", ...size }]];
}

/**
 * Draw `el` as an SVG, laid out `width` pixels wide, its canvases painted for `scale` pixels to one; then all is as
 * before. `repaint` paints what can be read only in the turn in which it was painted.
 */
export async function figureOf(el, root, { width, scale }, repaint) {
  const set = stylesFor(el, root, width);
  const before = set.map(([one, styles]) =>
    Object.fromEntries(Object.keys(styles).map((name) => [name, one.style[name]])),
  );
  root.classList.add("exporting");
  el.classList.toggle("figure", el.classList.contains("section"));
  set.forEach(([one, styles]) => Object.assign(one.style, styles));
  try {
    await nextFrame(); // plots hear of their size
    setPixelRatio(scale);
    await nextFrame(); // and draw themselves
    repaint();
    return pageSvg(el);
  } finally {
    set.forEach(([one], n) => Object.assign(one.style, before[n]));
    root.classList.remove("exporting");
    el.classList.remove("figure");
    setPixelRatio(0);
  }
}
