// Small helpers to make elements. No inline style attributes: a strict CSP forbids them.

import { shortened } from "../draw/format.js";
import { node } from "../draw/svg.js";

let count = 0;

/** A new id, unique in the document, so that two widgets in one notebook never collide. */
export function uid(prefix) {
  count += 1;
  return `ob-${prefix}-${count}`;
}

/** What can be put into an element: nodes, text, or objects with an element `el`; null is skipped. */
const nodes = (children) => children.flat().flatMap((child) => child?.el ?? child ?? []);

/** Make an element: attributes, `on...` listeners, then children. */
export function h(tag, attributes, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name === "class") el.className = value;
    else el.setAttribute(name, value === true ? "" : value);
  }
  el.append(...nodes(children));
  return el;
}

/** Put new children into an element in place of the old. */
export function fill(el, ...children) {
  el.replaceChildren(...nodes(children));
  return el;
}

/** Show or hide an element. */
export function show(el, visible) {
  el.hidden = !visible;
}

/** Write text only where it changed: assistive technology and layout are left in peace. */
export function write(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

/** A short line in a model's color and dash: the sign by which plots tell models apart. */
export function swatch({ color, dash }) {
  const look = { x1: 1, x2: 19, y1: 5, y2: 5, stroke: color, "stroke-width": 3, "stroke-dasharray": dash || "none" };
  return node("svg", { class: "swatch", width: 20, height: 10, "aria-hidden": "true" }, node("line", look));
}

/** A model's sign and its name, without its middle where it is long; `title` is the whole of a name that is short already. */
export function modelLabel(model, most) {
  const words = shortened(model.name, most);
  const title = model.title ?? (words === model.name ? null : model.name);
  return [swatch(model), h("span", { class: "model-name", title }, words)];
}

/** A button with an accessible name. */
export function button(label, onclick, attributes) {
  return h("button", { type: "button", onclick, ...attributes }, label);
}
