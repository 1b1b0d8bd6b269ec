// What the colors of the embedding mean: a ramp with its ends, or the classes.

import { fill, h } from "../core/dom.js";
import { CLASSES, badToGood, classColor, classPlaces, colorOf } from "../draw/colors.js";
import { whole } from "../core/text.js";
import { ends } from "../draw/format.js";
import { onlyRounding } from "../draw/scales.js";

const STOPS = 24;

const NARROW = 1 / 3;

/**
 * A diverging scale reaches as far on both sides as its values do on one. Values that fill little of
 * a sequential one would all look alike: it is drawn over them alone.
 */
export function withColorRange(answer, classes = [], rounding = 0) {
  if (answer.scale === "classes") {
    const names = answer.names ?? classes;
    return { ...answer, names, colors: classPlaces(answer.arrays.values.data, names.length) };
  }
  if (answer.higher_is_better === false && onlyRounding(answer.arrays.values.data, rounding))
    return { ...answer, range: [0, rounding] };
  if (answer.scale === "sequential") return { ...answer, range: narrowed(answer) };
  if (answer.scale !== "diverging") return answer;
  const far = answer.arrays.values.data.reduce(
    (most, value) => (Math.abs(value) > most ? Math.abs(value) : most),
    0.01,
  );
  const round = Math.ceil(far * 20) / 20;
  return { ...answer, range: [-round, round] };
}

function narrowed({ range, arrays }) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of arrays.values.data) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const spread = high - low;
  return spread > 0 && spread < NARROW * (range[1] - range[0]) ? [low, high] : range;
}

/** Make the key; `set(colorAnswer, dark)`. */
export function createColorKey() {
  const el = h("div", { class: "key" });

  function set({ scale, range, title, names, colors, unit, higher_is_better: upward }, dark) {
    const mark = ["°", "px"].includes(unit) ? unit : "";
    const name = h("span", { class: "key-title", title }, title ?? "");
    if (scale === "classes") {
      const chips = colors.shown.map((c) => chip(classColor(colors.place(c), dark), names[c] ?? c));
      const rest = colors.rest ? chip(classColor(CLASSES.length - 1, dark), `${whole(colors.rest)} others`) : null;
      fill(el, chips, rest, name);
    } else {
      const [low, high] = ends(range).map((value) => h("span", {}, value + mark));
      fill(el, low, strip(scale, range, badToGood(range, upward), dark), high, name);
    }
  }

  return { el, set };
}

function chip(color, text) {
  const dot = h("i", { class: "dot" });
  dot.style.background = color;
  return h("span", { class: "chip-class" }, dot, String(text));
}

function strip(kind, [low, high], shades, dark) {
  const el = h("span", { class: "strip", "aria-hidden": "true" });
  const at = (i) => colorOf(low + ((high - low) * i) / (STOPS - 1), shades, dark, kind);
  el.style.background = `linear-gradient(to right, ${Array.from({ length: STOPS }, (_, i) => at(i)).join()})`;
  return el;
}
