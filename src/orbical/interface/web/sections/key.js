// What the colours of the embedding mean: a ramp with its ends, or the classes.

import { fill, h } from "../core/dom.js";
import { classColour, colourOf } from "../draw/colours.js";
import { short } from "../draw/format.js";

const STOPS = 24;

/** Make the key; `set(colourAnswer, state, dark)`. */
export function createKey() {
  const el = h("div", { class: "key" });

  function set({ scale, range, title }, state, dark) {
    const name = h("span", { class: "key-title" }, title ?? "");
    if (scale === "classes") fill(el, name, state.classes.slice(0, 12).map((text, c) => chip(classColour(c, dark), text)));
    else fill(el, name, h("span", {}, short(range[0])), strip(scale, range, dark), h("span", {}, short(range[1])));
  }

  return { el, set };
}

function chip(colour, text) {
  const dot = h("i", { class: "dot" });
  dot.style.background = colour;
  return h("span", { class: "chip-class" }, dot, String(text));
}

function strip(kind, [low, high], dark) {
  const el = h("span", { class: "strip", "aria-hidden": "true" });
  for (let i = 0; i < STOPS; i += 1) {
    const cell = h("i", {});
    cell.style.background = colourOf(low + ((high - low) * i) / (STOPS - 1), [low, high], dark, kind);
    el.append(cell);
  }
  return el;
}
