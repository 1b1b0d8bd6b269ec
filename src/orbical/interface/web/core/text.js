// Numbers and names as the page writes them.

/** A whole number with thousands separated: 1,000. */
export function whole(number) {
  return Number(number).toLocaleString("en-US");
}

/** What is said of predictions that differ by less than numbers can tell. */
export const EQUAL = "equal up to rounding";

/** First letter upper case. */
export function sentence(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : text;
}

/** The name of a class. */
export function className(state, label) {
  if (!Number.isFinite(label ?? NaN) || label < 0) return "–";
  return String(state.classes[label] ?? label);
}

/** "123 of 1,000 digits", or "1,000 digits" where the subset is everything. */
export function counted(count, total, noun) {
  if (count < total) return `${whole(count)} of ${whole(total)} ${noun}`;
  return `${whole(count)} ${count === 1 ? singular(noun) : noun}`;
}

/** One of a plural noun: digits -> digit. */
export function singular(noun) {
  return noun.endsWith("s") ? noun.slice(0, -1) : noun;
}

/** A value of the metadata: numbers by their first digits, a dash where there is none. */
export function fact(value) {
  if (value === null || value === undefined || value === "") return "–";
  return typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);
}

/** The folder that all names begin with, as paths of files do: it tells none of them apart. */
export function sharedFolder(names) {
  if (names.length < 2) return "";
  let shared = names[0].slice(0, names[0].lastIndexOf("/") + 1);
  for (const name of names)
    while (!name.startsWith(shared)) shared = shared.slice(0, shared.lastIndexOf("/", shared.length - 2) + 1);
  return shared;
}

const degree = (value) => `${tidy(value)}°`;
const tidy = (value) => String(Number(Number(value).toFixed(1))).replace("-", "−");

const WORDS = {
  angle: degree,
  dx: (value) => `dx ${tidy(value)}`,
  dy: (value) => `dy ${tidy(value)}`,
  scale: (value) => `× ${Number(Number(value).toFixed(3))}`,
  inversion: (value) => (value < 0 ? "inversion" : ""),
  time: (value) => (value > 0 ? "forward" : "reversed"),
  flip: (value) =>
    ({ plain: "", none: "not flipped", both: "flipped both ways" })[value] ??
    (value === "mirrored" ? value : `flipped, ${value}`),
};

/** Words for what lies between elements; elements with a rotation of space have names. */
const BETWEEN = {
  ...WORDS,
  rx: (value) => `x ${degree(value)}`,
  ry: (value) => `y ${degree(value)}`,
  rz: (value) => `z ${degree(value)}`,
};

/** A rotation in space: how far, and about which axis of a plane. */
const aboutAxis = (plane, azimuth, angle) =>
  Number(angle) === 0 ? "0°" : `${degree(angle)} about ${plane} axis at ${degree(azimuth)}`;

/**
 * The names of all elements, by coordinate; those of the group itself where one is unknown.
 * @param {{ names: string[], coords?: Record<string, any[]> }} group
 */
export function elementNames({ names, coords = {} }) {
  const keys = Object.keys(coords);
  const { plane, azimuth, angle } = coords;
  if (keys.length === 3 && plane && azimuth && angle) {
    return names.map((_, i) => aboutAxis(plane[i], azimuth[i], angle[i]));
  }
  if (!keys.length || !keys.every((key) => WORDS[key] && coords[key].length === names.length)) return names;
  return names.map(
    (given, i) =>
      keys
        .map((key) => WORDS[key](coords[key][i]))
        .filter(Boolean)
        .join(", ") || given,
  );
}

/** The name of a place between elements, from its continuous position. */
export function positionName({ kind, coords = {} }, position) {
  const keys = Object.keys(coords);
  if (kind === "circle") return degree(((position[0] % 360) + 360) % 360);
  return position.map((value, i) => (BETWEEN[keys[i]] ? BETWEEN[keys[i]](value) : tidy(value))).join(", ");
}
