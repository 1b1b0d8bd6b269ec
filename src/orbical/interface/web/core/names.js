// What the elements of a group are called on the page: from their coordinates, in short words.

const degree = (value) => `${tidy(value)}°`;
const tidy = (value) => String(Number(Number(value).toFixed(1))).replace("-", "−");

const WORDS = {
  angle: degree,
  azimuth: (value) => `azimuth ${degree(value)}`,
  plane: (value) => `plane ${value}`,
  rx: (value) => `x ${degree(value)}`,
  ry: (value) => `y ${degree(value)}`,
  rz: (value) => `z ${degree(value)}`,
  dx: (value) => `dx ${tidy(value)}`,
  dy: (value) => `dy ${tidy(value)}`,
  scale: (value) => `× ${Number(Number(value).toFixed(3))}`,
  time: (value) => (value > 0 ? "forward" : "reversed"),
  flip: (value) =>
    ({ plain: "", none: "not flipped", both: "flipped both ways" })[value] ??
    (value === "mirrored" ? value : `flipped, ${value}`),
};

/** The names of all elements, by coordinate; those of the group itself where one is unknown. */
export function elementNames({ names, coords = {} }) {
  const keys = Object.keys(coords);
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
