// Clauses of a filter: a column of the samples, and the range or the values that are kept. They are written
// `column:low..high` or `column:value,value`, with `column@model` where a column is of each model.

const escaped = (text) => encodeURIComponent(text).replaceAll("..", "%2E%2E");
// An end that is open is left out; what is endless itself is written so.
const end = (number, open) => (number === open ? "" : String(Number(number.toPrecision(6))));

function real(text, missing) {
  const number = text === "" ? missing : Number(text);
  if (Number.isNaN(number) || text.trim() !== text) throw new Error(`filter: expected a number, got ${text}`);
  return number;
}

/** Read a clause: `{column, model, low, high, values}`, with `values` null for a range. */
export function parseClause(text) {
  const colon = text.indexOf(":");
  const [column, model, ...more] = text.slice(0, Math.max(0, colon)).split("@");
  if (!column || model === "" || more.length)
    throw new Error(`filter: expected column:low..high or column:value,value, got ${text}`);
  const kept = text.slice(colon + 1);
  const owner = { column: decodeURIComponent(column), model: decodeURIComponent(model ?? "") };
  const dots = kept.indexOf("..");
  if (dots < 0) return { ...owner, low: -Infinity, high: Infinity, values: kept.split(",").map(decodeURIComponent) };
  const [low, high] = [kept.slice(0, dots), kept.slice(dots + 2)];
  return { ...owner, low: real(low, -Infinity), high: real(high, Infinity), values: null };
}

/**
 * Write a clause.
 * @param {{ column: string, model?: string, low?: number, high?: number, values?: string[] | null }} clause
 */
export function writeClause({ column, model = "", low = -Infinity, high = Infinity, values = null }) {
  const owner = escaped(column) + (model ? `@${escaped(model)}` : "");
  return `${owner}:${values ? values.map(escaped).join(",") : `${end(low, -Infinity)}..${end(high, Infinity)}`}`;
}

/** The clause of a column (and model) in a filter, or null. */
export function clauseOf(filter, column, model = "") {
  return filter.map(parseClause).find((one) => one.column === column && one.model === model) ?? null;
}

/** A filter with another clause of the same column and model in place of its own; null takes it out. */
export function withClause(filter, { column, model = "" }, clause) {
  const others = filter.filter((text) => {
    const one = parseClause(text);
    return one.column !== column || one.model !== model;
  });
  return clause ? [...others, writeClause({ ...clause, column, model })] : others;
}
