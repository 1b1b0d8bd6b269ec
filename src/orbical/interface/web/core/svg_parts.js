// A copy of an SVG that stands by itself: colors and type resolved, nothing left to the page.
import { assign, node, round as rounded } from "../draw/svg.js";
import { h, uid } from "./dom.js";

const STYLED = (
  "fill stroke stroke-width stroke-dasharray stroke-linecap stroke-linejoin opacity fill-opacity stroke-opacity " +
  "font-size font-family font-weight text-anchor paint-order dominant-baseline visibility"
).split(" ");

/** A copy of an SVG with its colors resolved, at its place. */
export function standaloneCopy(svg, box, origin) {
  const copy = svg.cloneNode(true);
  const ours = [copy, ...copy.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of STYLED) ours[i].setAttribute(name, style.getPropertyValue(name));
    ours[i].removeAttribute("class");
  });
  copy.querySelectorAll("[data-transient]").forEach((element) => element.remove());
  const place = placeOf(box, origin);
  assign(copy, place);
  if (!copy.getAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${place.width} ${place.height}`);
  copy.removeAttribute("style");
  return copy;
}

const SIDES = ["Top", "Right", "Bottom", "Left"];

/** Where a box stands in the picture. */
export function placeOf(box, origin) {
  const [x, y, width, height] = [box.left - origin.left, box.top - origin.top, box.width, box.height].map(rounded);
  return { x, y, width, height };
}

function clear(color) {
  return !color || color === "transparent" || /^rgba\(.*, 0\)$/.test(color);
}

/** The color behind an element: its own, or that of the nearest around it. */
export function backgroundOf(el) {
  for (let at = el; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (!clear(color)) return color;
  }
  return "white";
}

/** The background and the border of a box; sides that differ become lines of their own. */
export function drawBox(style, box, out, origin) {
  const widths = SIDES.map((side) =>
    clear(style[`border${side}Color`]) ? 0 : parseFloat(style[`border${side}Width`]),
  );
  const even = widths.every((width) => width === widths[0]);
  const filled = !clear(style.backgroundColor);
  const half = even ? widths[0] / 2 : 0;
  const [x, y] = [box.left - origin.left, box.top - origin.top];
  if (filled || (even && half)) {
    out.append(
      node("rect", {
        x: rounded(x + half),
        y: rounded(y + half),
        width: rounded(Math.max(0, box.width - 2 * half)),
        height: rounded(Math.max(0, box.height - 2 * half)),
        rx: parseFloat(style.borderTopLeftRadius) || 0,
        fill: filled ? style.backgroundColor : "none",
        stroke: half ? style.borderTopColor : "none",
        "stroke-width": 2 * half,
      }),
    );
  }
  if (style.backgroundImage.startsWith("linear-gradient(to right")) drawRamp(style, [x, y], box, out);
  const inner = /^(rgba?\([^)]*\)) 0px 0px 0px ([\d.]+)px inset$/.exec(style.boxShadow);
  if (inner) drawInnerLine(inner[1], Number(inner[2]), half, [x, y], box, style, out);
  if (!even) drawSides(style, widths, [x, y, x + box.width, y + box.height], out);
}

/** A line along the inside of the border: what is selected. */
function drawInnerLine(stroke, wide, half, [x, y], box, style, out) {
  const off = 2 * half + wide / 2;
  const place = { x: rounded(x + off), y: rounded(y + off), rx: parseFloat(style.borderTopLeftRadius) || 0 };
  const size = { width: rounded(box.width - 2 * off), height: rounded(box.height - 2 * off) };
  out.append(node("rect", { ...place, ...size, fill: "none", stroke, "stroke-width": wide }));
}

/** A colored sign before the words of an element, such as the dot of a badge. */
export function drawBefore(el, box, out, origin) {
  const style = getComputedStyle(el, "::before");
  const [width, height] = [parseFloat(style.width), parseFloat(style.height)];
  if (style.content === "none" || clear(style.backgroundColor) || !width || !height) return;
  const own = getComputedStyle(el);
  const line = own.display.includes("flex") ? box.height : parseFloat(own.lineHeight) || box.height;
  const y = box.top - origin.top + parseFloat(own.paddingTop) + (Math.min(line, box.height) - height) / 2;
  const x = box.left - origin.left + parseFloat(own.paddingLeft);
  const place = { x: rounded(x), y: rounded(y), width, height };
  out.append(node("rect", { ...place, rx: Math.min(width, height) / 2, fill: style.backgroundColor }));
}

/** The colors of a key, from left to right. */
function drawRamp(style, [x, y], box, out) {
  const id = uid("ramp");
  const colors = style.backgroundImage.match(/rgba?\([^)]*\)/g) ?? [];
  const ramp = node("linearGradient", { id });
  colors.forEach((color, i) => ramp.append(node("stop", { offset: i / (colors.length - 1), "stop-color": color })));
  const place = { x: rounded(x), y: rounded(y), width: rounded(box.width), height: rounded(box.height) };
  out.append(ramp, node("rect", { ...place, rx: parseFloat(style.borderTopLeftRadius) || 0, fill: `url(#${id})` }));
}

function drawSides(style, widths, [left, top, right, bottom], out) {
  const ends = [
    [left, top, right, top],
    [right, top, right, bottom],
    [left, bottom, right, bottom],
    [left, top, left, bottom],
  ];
  SIDES.forEach((side, i) => {
    if (!widths[i]) return;
    const [x1, y1, x2, y2] = ends[i].map(rounded);
    out.append(node("line", { x1, y1, x2, y2, stroke: style[`border${side}Color`], "stroke-width": widths[i] }));
  });
}

/** A canvas or a picture, pixel by pixel where the page shows it so. */
export function drawPixels(el, style, box, out, origin) {
  out.append(
    node("image", {
      href: el.tagName === "CANVAS" ? el.toDataURL("image/png") : drawn(el),
      ...placeOf(box, origin),
      preserveAspectRatio: "xMidYMid meet",
      "image-rendering": style.imageRendering === "pixelated" ? "pixelated" : "auto",
    }),
  );
}

function drawn(picture) {
  const canvas = h("canvas", { width: picture.naturalWidth, height: picture.naturalHeight });
  canvas.getContext("2d").drawImage(picture, 0, 0);
  return canvas.toDataURL("image/png");
}

/** Words that fit in some room, with an ellipsis where they are cut. */
export function fitting(words, style, room) {
  const pen = h("canvas", {}).getContext("2d");
  pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const wide = (text) => pen.measureText(text).width;
  if (wide(words) <= room) return words;
  let end = words.length;
  while (end > 0 && wide(`${words.slice(0, end)}…`) > room) end -= 1;
  return `${words.slice(0, end).trimEnd()}…`;
}

/** One text per line box, so that wrapped text stays as it is on the page; cut at an edge where the page does. */
export function drawText(text, style, out, origin, edge = Infinity) {
  const range = document.createRange();
  let line = "";
  /** @type {any} */
  let box = null; // of the line, once it has begun
  const cut = (words) => (edge === Infinity ? words : fitting(words, style, edge - box.left));
  const flush = () => line && drawWords(cut(line.trimEnd()), style, box.left, (box.top + box.bottom) / 2, out, origin);
  for (let i = 0; i < text.length; i += 1) {
    range.setStart(text, i);
    range.setEnd(text, i + 1);
    const at = range.getClientRects()[0];
    if (!at || (!line && !text.data[i].trim())) continue;
    if (line && Math.abs(at.top - box.top) > 2) {
      flush();
      line = "";
    }
    if (!line) box = at;
    line += text.data[i];
  }
  flush();
}

/** Words from a place on, centered on a height. */
export function drawWords(words, style, left, middle, out, origin) {
  const text = node("text", {
    x: rounded(left - origin.left),
    y: rounded(middle - origin.top),
    dy: "0.35em",
    fill: style.color,
    "font-size": style.fontSize,
    "font-family": style.fontFamily.replaceAll('"', "'"),
    "font-weight": style.fontWeight,
    "font-style": style.fontStyle,
    "text-decoration": style.textDecorationLine === "underline" ? "underline" : "none",
  });
  text.textContent = words;
  out.append(text);
}
