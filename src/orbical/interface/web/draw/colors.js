/** Colors of models, classes and numbers: those of the figures, lighter on a dark page. */

/** Of more models the numbers are in one table, and plots keep their size. */
export const SEVERAL = 2;

/** Of more models plots have lines alone, and lists scroll. */
export const MANY = 4;

/** Okabe and Ito's, in the order of the models; told apart with any color vision. */
export const MODELS = colors("0072B2 D55E00 009E73 CC79A7 E69F00 56B4E9 4D4D4D");

/** Paul Tol's muted scheme. */
export const CLASSES = colors("332288 CC6677 117733 88CCEE DDCC77 882255 44AA99 999933 AA4499 9A9A9A");

/** The same classes for a dark page: its dark ones are lifted. */
export const CLASSES_ON_DARK = colors("8A7FE0 E08593 4CB36F 88CCEE DDCC77 D2608F 44BBA9 B5B548 D17BD1 B5B5B5");

function colors(words) {
  return words.split(" ").map((word) => `#${word}`);
}

/** Dashes beside the colors, so that hue is never the only sign of a model. */
export const DASHES = ["", "7 3", "2 3", "9 3 2 3", "14 4", "5 2 1 2 1 2", "4 5"];

/** Where the page is dark, the first part of a ramp would vanish: it starts here. */
const START_ON_DARK = 0.33;
const VIRIDIS =
  "440154 481769 472a7a 433d84 3d4e8a 355e8d 2e6d8e 297b8e 23898e 1f978b 21a585 2eb37c 46c06f 65cb5e 89d548 b0dd2f d8e219 fde725";
const DIVERGING = {
  light: "0b4f80 0072b2 6ba7cf c2c2c2 eda06a d55e00 963f00",
  dark: "4ba6e0 3f8fc4 5d83a1 7d7d7d a5805f d9752f f2813a",
};

/** The gray of what is missing. */
export const MISSING = { light: "#e3e3e3", dark: "#3a3d42" };

/** The color of the model at a place in the scan, as the page names it. */
export function modelColor(place) {
  const k = place % MODELS.length;
  return `var(--model-${k}, ${MODELS[k]})`;
}

/** The color of the class at a place. */
export function classColor(place, dark = false) {
  const list = manyClasses(dark);
  return list[place % list.length];
}

/** The colors of classes, and for more of them lighter and darker ones: 28 that can be told apart. */
export function manyClasses(dark = false) {
  const first = dark ? CLASSES_ON_DARK : CLASSES;
  const toward = (end, share) => (color) =>
    `#${parse(color)
      .map((part) =>
        Math.round(part + share * (end - part))
          .toString(16)
          .padStart(2, "0"),
      )
      .join("")}`;
  const hues = first.slice(0, -1); // gray stands for the rest
  return [...first, ...hues.map(toward(255, 0.4)), ...hues.map(toward(0, 0.4))];
}

/**
 * The color of each class by its place: its own where there are as many colors; of more classes, the most frequent have
 * one each, and the others, `rest`, share the last, which is gray.
 */
export function classPlaces(values, classes) {
  if (classes <= CLASSES.length)
    return { shown: Array.from({ length: classes }, (_, c) => c), place: (c) => c, rest: 0 };
  const counts = new Map();
  for (const value of values) if (value >= 0) counts.set(value, (counts.get(value) ?? 0) + 1);
  const last = CLASSES.length - 1;
  const often = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || a - b);
  const shown = often.length > CLASSES.length ? often.slice(0, last) : often;
  const places = new Map(shown.map((c, place) => [c, place]));
  return { shown, place: (c) => places.get(c) ?? (c >= 0 ? last : c), rest: often.length - shown.length };
}

/** The dash of the model at a place: models that share a color have different ones. */
export const modelDash = (place) => DASHES[(place + Math.floor(place / MODELS.length)) % DASHES.length];

/** The dash of a model: its own, that of its color, or that of its place in the list. */
export function dashOf(model, place) {
  if (model.dash !== undefined) return model.dash;
  const named = /--model-(\d+)/.exec(model.color ?? "");
  const known = named ? Number(named[1]) : MODELS.findIndex((color) => same(color, model.color));
  return DASHES[(known >= 0 ? known : place) % DASHES.length];
}

/** `[red, green, blue]` of `#rrggbb`, `#rgb` or `rgb(...)`. */
export function parse(color) {
  const words = String(color).trim();
  if (/^#[0-9a-f]{3}$/i.test(words)) return [...words.slice(1)].map((digit) => parseInt(digit + digit, 16));
  if (/^#[0-9a-f]{6}/i.test(words)) return [1, 3, 5].map((at) => parseInt(words.slice(at, at + 2), 16));
  const numbers = words.match(/[\d.]+/g);
  return numbers && numbers.length >= 3 ? numbers.slice(0, 3).map(Number) : [0, 0, 0];
}

/** How light a color looks, from 0 to 1. */
export function lightness(/** @type {number[]} */ [red, green, blue]) {
  return (0.299 * red + 0.587 * green + 0.114 * blue) / 255;
}

/** How bright a color is, by which WCAG measures contrast. */
function luminance(color) {
  const [red, green, blue] = color.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The contrast of two colors, from 1 to 21. */
export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

const PAPER = { light: [255, 255, 255], dark: [24, 28, 34] };
const READABLE = 4.5;

/** A color for words: darker on a light page, lighter on a dark one, until it can be read. */
export function inkOf(color, dark = false) {
  const [paper, end] = [PAPER[dark ? "dark" : "light"], dark ? 255 : 0];
  let mixed = parse(color);
  while (contrast(mixed, paper) < READABLE) mixed = mixed.map((part) => Math.round(part + 0.1 * (end - part)));
  return `rgb(${mixed.join(", ")})`;
}

/** The color in which the name of a model is written: that of its lines, dark enough for words. */
export function modelInk(color) {
  return String(color).replace("--model-", "--model-ink-");
}

/** Whether an element stands on a dark page: its text is light there. */
export function isDark(element) {
  const theme = element.closest("[data-theme]")?.dataset.theme;
  // To ask for a computed style in the middle of a change lays out the page once more.
  if (theme && !matchMedia("(forced-colors: active)").matches) return theme === "dark";
  return lightness(parse(getComputedStyle(element).color)) > 0.5;
}

const made = new Map();

/** The 256 colors of a ramp, `[r, g, b]` each in one flat array. */
export function ramp(kind, dark = false) {
  const key = `${kind} ${dark}`;
  if (!made.has(key)) made.set(key, build(kind, dark));
  return made.get(key);
}

function build(kind, dark) {
  const words = kind === "diverging" ? DIVERGING[dark ? "dark" : "light"] : VIRIDIS;
  const anchors = words.split(" ").map((word) => parse(`#${word}`));
  const start = kind !== "diverging" && dark ? START_ON_DARK : 0;
  const table = new Uint8Array(256 * 3);
  for (let i = 0; i < 256; i += 1) {
    const place = (start + (1 - start) * (i / 255)) * (anchors.length - 1);
    const k = Math.min(Math.floor(place), anchors.length - 2);
    for (let c = 0; c < 3; c += 1) {
      table[3 * i + c] = Math.round(anchors[k][c] + (place - k) * (anchors[k + 1][c] - anchors[k][c]));
    }
  }
  return table;
}

/** A range from bad to good, so that the last color of a ramp is always the good one. */
export function badToGood(/** @type {number[]} */ [low, high], higherIsBetter) {
  return higherIsBetter === false ? [high, low] : [low, high];
}

/** The place in a ramp of 256 of a value in a range, which may fall: from bad to good. */
export function rampPlace(value, /** @type {number[]} */ [low, high]) {
  const share = high !== low ? (value - low) / (high - low) : 0.5;
  return Math.min(Math.max(Math.round(share * 255), 0), 255);
}

/** The color of one value, `rgb(...)`; a missing one is gray. */
export function colorOf(value, range, dark = false, kind = "sequential") {
  if (!Number.isFinite(value)) return MISSING[dark ? "dark" : "light"];
  const [table, at] = [ramp(kind, dark), 3 * rampPlace(value, range)];
  return `rgb(${table[at]}, ${table[at + 1]}, ${table[at + 2]})`;
}

/** Colors of many values as rgba bytes: `kind` sequential, diverging or classes. */
export function colorize(values, { kind = "sequential", range = [0, 1] }, dark = false) {
  const bytes = new Uint8Array(4 * values.length);
  const missing = parse(MISSING[dark ? "dark" : "light"]);
  const classes = kind === "classes" ? manyClasses(dark).map(parse) : [];
  const table = kind === "classes" ? null : ramp(kind, dark);
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    const at = 4 * i;
    bytes[at + 3] = 255;
    if (!Number.isFinite(value)) {
      bytes.set(missing, at);
    } else if (table) {
      const place = 3 * rampPlace(value, range);
      bytes[at] = table[place];
      bytes[at + 1] = table[place + 1];
      bytes[at + 2] = table[place + 2];
    } else {
      bytes.set(classes[Math.abs(Math.round(value)) % classes.length], at);
    }
  }
  return bytes;
}

/** Ink or white, whichever is read on a color. */
export function readableOn(color) {
  return lightness(parse(color)) > 0.5 ? "#222222" : "#ffffff";
}

function same(one, other) {
  return String(one).toLowerCase() === String(other).toLowerCase();
}
