// The selection: everything the page shows is a function of it. Field names are those of Python and of links.

import { parseClause } from "./clauses.js";

export const DEFAULTS = Object.freeze({
  scan: "",
  models: [],
  metric: "",
  reference: "truth",
  filter: [],
  subset: "",
  method: "pca",
  of: "",
  color: "mean",
  order: "worst",
  listing: "list",
  sample: 0,
  element: -1,
  position: [],
  slices: [],
  scope: "element",
  dense: false,
  pins: [],
  stage: "",
  show: "mean",
  by: "",
  quantile: "",
  runs: "curves",
  against: "",
  answers: "reliability",
  marks: "points",
  scale: "fit",
  shape: "circle",
});

/** The fields that decide which samples are shown. */
export const SHOWN = ["filter", "subset"];

// What a reader of the address looks for comes first.
const FIRST = ["scan", "sample", "element"];
const ORDER = [...FIRST, ...Object.keys(DEFAULTS).filter((name) => !FIRST.includes(name))];

const READ = {
  models: (text) => list(text).map(decodeURIComponent),
  filter: (text) => (text ? text.split(";").map((one) => (parseClause(one), one)) : []),
  position: (text) => list(text).map(real),
  pins: (text) => list(text).map(whole),
  slices: (text) => list(text).map(whole),
  subset: hash,
  sample: whole,
  element: whole,
  dense: (text) => text === "1",
};

/** Number with at most four decimals and no trailing zeros: short links. */
function short(number) {
  return String(Number(number.toFixed(4)));
}

const WRITE = {
  models: (value) => value.map(encodeURIComponent).join(","),
  filter: (value) => value.join(";"), // clauses are escaped
  pins: (value) => value.join(","),
  slices: (value) => value.join(","),
  position: (value) => value.map(short).join(","),
  dense: (value) => (value ? "1" : "0"),
};

function list(text) {
  return text ? text.split(",") : [];
}

function hash(text) {
  if (!/^[0-9a-f]{16}$/.test(text)) throw new Error(`expected the name of a set, got ${text}`);
  return text;
}

function whole(text) {
  const number = Number(text);
  if (!/^-?\d+$/.test(text)) throw new Error(`expected an integer, got ${text}`);
  return number;
}

function real(text) {
  const number = Number(text);
  if (text.trim() === "" || !Number.isFinite(number)) {
    throw new Error(`expected a number, got ${text}`);
  }
  return number;
}

/** Whether two values of a field are the same. */
export function same(a, b) {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** The selection as a URL fragment without `#`; only fields that differ from the default. */
export function toFragment(selection) {
  const parts = [];
  for (const name of ORDER) {
    const initial = DEFAULTS[name];
    const value = selection[name];
    if (value === undefined || same(value, initial)) continue;
    const text = WRITE[name] ? WRITE[name](value) : encodeURIComponent(value);
    parts.push(`${name}=${text}`);
  }
  return parts.join("&");
}

/** Read a URL fragment; fields that are unknown or ill-written keep their default. */
export function fromFragment(text) {
  const selection = { ...DEFAULTS };
  for (const part of text.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    const name = part.slice(0, at);
    if (at < 0 || !(name in DEFAULTS)) continue;
    try {
      const raw = part.slice(at + 1);
      selection[name] = READ[name] ? READ[name](raw) : decodeURIComponent(raw);
    } catch {
      selection[name] = DEFAULTS[name];
    }
  }
  return selection;
}
