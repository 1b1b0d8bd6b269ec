// What the elements of a group are called on the page: from their coordinates, in short words.

const degree = (value) => `${tidy(value)}°`;
const tidy = (value) => String(Number(Number(value).toFixed(1))).replace("-", "−");

const WORDS = {
  angle: degree,
  rx: (value) => `x ${degree(value)}`,
  ry: (value) => `y ${degree(value)}`,
  rz: (value) => `z ${degree(value)}`,
  dx: (value) => `dx ${tidy(value)}`,
  dy: (value) => `dy ${tidy(value)}`,
  scale: (value) => `× ${Number(Number(value).toFixed(3))}`,
  time: (value) => (value > 0 ? "forward" : "reversed"),
  inversion: (value) => (value < 0 ? "inverted" : ""),
  flip: (value) =>
    ({ plain: "", none: "not flipped", both: "flipped both ways" })[value] ??
    (value === "mirrored" ? value : `flipped, ${value}`),
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
  return position.map((value, i) => (WORDS[keys[i]] ? WORDS[keys[i]](value) : tidy(value))).join(", ");
}
