// The page as one SVG: boxes, text, plots and pixels where they stand. No foreignObject, so every
// program can open it and a canvas can draw it.

import { copied, rounded } from "./svgcopy.js";

const SPACE = "http://www.w3.org/2000/svg";
const SKIPPED = new Set(["SCRIPT", "STYLE", "DIALOG", "OPTION", "INPUT", "BR"]);
function node(name, attributes) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const clear = (colour) => !colour || colour === "transparent" || /, 0\)$/.test(colour);

/** Draw an element and all it holds into an SVG of its size. */
export function compose(root) {
  const box = root.getBoundingClientRect();
  const svg = node("svg", {
    xmlns: SPACE,
    width: rounded(box.width),
    height: rounded(box.height),
    viewBox: `0 0 ${rounded(box.width)} ${rounded(box.height)}`,
  });
  walk(root, svg, box, root);
  return svg;
}

function walk(el, out, origin, root) {
  const style = getComputedStyle(el);
  const hidden = style.display === "none" || style.visibility === "hidden" || style.opacity === "0";
  if (hidden || SKIPPED.has(el.tagName) || el.matches("[popover]:not(:popover-open), .hidden, [data-transient]"))
    return;
  const box = el.getBoundingClientRect();
  if (!box.width && !box.height && style.display !== "contents") return;
  if (el.tagName === "svg") return out.append(copied(el, box, origin));
  drawBox(style, box, out, origin, el === root);
  if (el.tagName === "CANVAS" || el.tagName === "IMG") drawPixels(el, style, box, out, origin);
  else if (el.tagName === "SELECT")
    drawWords(
      el.selectedOptions[0]?.textContent ?? "",
      style,
      box.left + parseFloat(style.paddingLeft),
      (box.top + box.bottom) / 2,
      out,
      origin,
    );
  else for (const child of el.childNodes) follow(child, out, origin, style, root);
}

function follow(child, out, origin, style, root) {
  if (child.nodeType === Node.ELEMENT_NODE) walk(child, out, origin, root);
  else if (child.nodeType === Node.TEXT_NODE && child.data.trim()) drawText(child, style, out, origin);
}

function drawBox(style, box, out, origin, always) {
  const filled = !clear(style.backgroundColor);
  const edge = parseFloat(style.borderTopWidth) > 0 && !clear(style.borderTopColor);
  if (!filled && !edge && !always) return;
  const half = edge ? parseFloat(style.borderTopWidth) / 2 : 0;
  out.append(
    node("rect", {
      x: rounded(box.left - origin.left + half),
      y: rounded(box.top - origin.top + half),
      width: rounded(Math.max(0, box.width - 2 * half)),
      height: rounded(Math.max(0, box.height - 2 * half)),
      rx: parseFloat(style.borderTopLeftRadius) || 0,
      fill: filled ? style.backgroundColor : "none",
      stroke: edge ? style.borderTopColor : "none",
      "stroke-width": edge ? style.borderTopWidth : 0,
    }),
  );
}

function drawPixels(el, style, box, out, origin) {
  const href = el.tagName === "CANVAS" ? el.toDataURL("image/png") : drawn(el);
  out.append(
    node("image", {
      href,
      x: rounded(box.left - origin.left),
      y: rounded(box.top - origin.top),
      width: rounded(box.width),
      height: rounded(box.height),
      preserveAspectRatio: "xMidYMid meet",
      "image-rendering": style.imageRendering === "pixelated" ? "pixelated" : "auto",
    }),
  );
}

function drawn(picture) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: picture.naturalWidth, height: picture.naturalHeight });
  canvas.getContext("2d").drawImage(picture, 0, 0);
  return canvas.toDataURL("image/png");
}

/** One text per line box, so that wrapped text stays as it is on the page. */
function drawText(text, style, out, origin) {
  const range = document.createRange();
  let [line, top, box] = ["", null, null];
  const flush = () =>
    line.trim() && drawWords(line.trimEnd(), style, box.left, (box.top + box.bottom) / 2, out, origin);
  for (let i = 0; i < text.length; i += 1) {
    range.setStart(text, i);
    range.setEnd(text, i + 1);
    const at = range.getClientRects()[0];
    if (!at || (!at.width && !line)) continue;
    if (top !== null && Math.abs(at.top - top) > 2) {
      flush();
      line = "";
    }
    if (!line) [top, box] = [at.top, at];
    line += text.data[i];
  }
  flush();
}

function drawWords(words, style, left, middle, out, origin) {
  const text = node("text", {
    x: rounded(left - origin.left),
    y: rounded(middle - origin.top),
    dy: "0.35em",
    fill: style.color,
    "font-size": style.fontSize,
    "font-family": style.fontFamily.replaceAll('"', "'"),
    "font-weight": style.fontWeight,
  });
  text.textContent = words;
  out.append(text);
}
