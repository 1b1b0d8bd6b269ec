// Numbers and names as the page writes them.

/** A whole number with thousands separated: 1,000. */
export function whole(number) {
  return Number(number).toLocaleString("en-US");
}

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
