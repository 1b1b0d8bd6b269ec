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
