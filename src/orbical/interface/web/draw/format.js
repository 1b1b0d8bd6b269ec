/** Numbers in words, and names in short. */

/** Decimals with which the largest of a range has about three digits. */
export function decimals([low, high]) {
  const largest = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const wanted = Math.min(Math.max(2 - Math.floor(Math.log10(largest)), 0), 6);
  return largest >= 0.1 ? Math.min(wanted, 3) : wanted;
}

/** A number with fixed decimals, a true minus sign, and a dash where there is none. */
export function fixed(value, places) {
  if (!Number.isFinite(value)) return "–";
  const words = value.toFixed(places);
  return Number(words) === 0 ? words.replace("-", "") : words.replace("-", "−");
}

/** A function that writes values of a range: given, or by the unit of the metric. */
export function formatter(format, range) {
  if (typeof format === "function") return (value) => (Number.isFinite(value) ? format(value) : "–");
  if (format === "share") return (value) => fixed(value, 3);
  const places = decimals(range);
  const most = Math.max(...range.map(Math.abs));
  if (most > 0 && most < 10 ** -places * 10) return precise(format); // fixed decimals would all be 0
  if (format === "px") return (value) => (Number.isFinite(value) ? `${fixed(value, places)} px` : "–");
  return (value) => fixed(value, places);
}

/** A number by its first digits, however small or large it is. */
export function significant(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(digits - 1).replaceAll("-", "−");
  if (size >= 10 ** (digits - 1)) return fixed(value, 0);
  return (size === 0 ? "0" : value.toPrecision(digits)).replace("-", "−");
}

/** A function that writes a value by itself: models may differ by orders of magnitude. */
export function precise(format) {
  if (format === "share" || typeof format === "function") return formatter(format);
  return (value) => significant(value) + (format === "px" && Number.isFinite(value) ? " px" : "");
}

/** How many letters different names begin with alike, and how many of the rest they end with alike. */
export function sharedEnds(names) {
  const run = (words, place) => {
    let count = 0;
    while (words.every((word) => count < word.length && word.at(place(count)) === words[0].at(place(count))))
      count += 1;
    return count;
  };
  const different = [...new Set(names)];
  if (different.length < 2) return [0, 0];
  const before = run(different, (count) => count);
  const rest = different.map((name) => name.slice(before));
  return [before, run(rest, (count) => -1 - count)];
}

/** A long name without its middle, or without the ends that it shares with others (see `sharedEnds`). */
export function shortened(name, most = 26, shared = [0, 0]) {
  if (name.length <= most) return name;
  const [before, after] = shared;
  const own = name.slice(before, name.length - after);
  const room = most - own.length - 2;
  if (room < 0) {
    const tail = Math.max(Math.floor((most - 1) / 2), 1);
    return own.length <= most ? own : `${own.slice(0, most - 1 - tail)}…${own.slice(-tail)}`;
  }
  const whole = after <= room + 1; // an extension, for which no ellipsis stands
  const head = Math.min(before, whole ? room + 1 - after : room);
  return `${name.slice(0, head)}${head < before ? "…" : ""}${own}${whole ? name.slice(name.length - after) : "…"}`;
}

/** Names without the words that all have at the same place, where one is longer than `most`: what is left tells them apart. */
export function distinct(names, most) {
  if (names.length < 2 || names.every((name) => name.length <= most)) return names;
  const words = names.map((name) => name.match(/[\p{L}\p{N}.]+|[^\p{L}\p{N}.]+/gu) ?? []);
  const [first] = words;
  const level = words.every(({ length }) => length === first.length);
  const shared = (place) => words.every((one) => one.at(place) === first.at(place));
  const run = (step) => {
    let count = 0;
    while (count < first.length && shared(step > 0 ? count : -1 - count)) count += 1;
    return count;
  };
  const [before, after] = [run(1), run(-1)];
  return words.map((one, n) => {
    const left = one.map((word, k) => (k < before || k >= one.length - after || (level && shared(k)) ? "…" : word));
    const told = left.join("").replace(/…+/g, "…");
    return told === "…" ? names[n] : told;
  });
}

/** A tick as short as it can be. */
export function short(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(0).replace("-", "−");
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

const size10 = (value) => Math.floor(Math.log10(Math.abs(value) || 1));

/** A value of a range in as few digits as tell it from others: two of what lies between the ends, and no less than `least`. */
export function apart(value, [low, high], least = 2) {
  if (Math.abs(value) < 1e-6 * (high - low)) return "0"; // what rounding in single precision left of it
  const digits = high > low ? Math.min(Math.max(2 + size10(value) - size10(high - low), least), 12) : 4;
  const rounded = Number(value.toPrecision(digits));
  return digits > 4 ? String(rounded).replace("-", "−") : short(rounded);
}

/** The ends of a range, told apart. */
export function ends(range) {
  return range.map((value) => apart(value, range));
}

/** An angle in degrees, whole where it is whole. */
export function degrees(angle) {
  const turned = ((angle % 360) + 360) % 360;
  const rounded = Math.round(turned * 10) / 10;
  return `${rounded === 360 ? 0 : rounded}°`;
}

/** Which values are good, where that is known. */
export function better(higherIsBetter) {
  if (higherIsBetter === undefined || higherIsBetter === null) return "";
  return higherIsBetter ? "higher is better" : "lower is better";
}

/** A count with thin spaces between thousands. */
export function count(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

/** What to keep in a scan, as it is typed: an option where a command opened the page, else Python. */
export function keep(/** @type {{ command?: boolean }} */ { command }, what) {
  return command ? `--keep ${what}` : `keep="${what}"`;
}
