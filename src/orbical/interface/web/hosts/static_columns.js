// Columns of the samples of a report: their values, and which samples a clause keeps.
import { parseClause } from "../core/clauses.js";

// The mean over the models that have a number; endless where it is endless for all.
function meanOver(data, models, samples) {
  return Float32Array.from({ length: samples }, (_, i) => {
    let [sum, seen, endless] = [0, 0, 0];
    for (let model = 0; model < models; model++) {
      const value = data[model * samples + i];
      if (Number.isFinite(value)) [sum, seen] = [sum + value, seen + 1];
      else if (value === Infinity) endless += 1;
    }
    return endless === models ? Infinity : sum / seen;
  });
}

// A column by name: what the state says of it, and its values: numbers, codes of categories or texts.
export async function columnOf({ pack, state, names, samples }, name, model = "") {
  const column = state.columns.find((one) => one.name === name);
  if (!column) {
    throw new Error(`filter: expected one of ${state.columns.map((one) => one.name).join(", ")}, got ${name}`);
  }
  const { arrays, texts } = await pack.take("columns");
  if (column.kind === "text") return { column, values: texts[name] };
  const { data } = arrays[name];
  if (!column.by_model) return { column, values: data };
  const place = names.indexOf(model);
  if (model && place < 0) throw new Error(`filter: expected one of ${names.join(", ")}, got ${model}`);
  if (!model && column.kind === "number") return { column, values: meanOver(data, names.length, samples) };
  const start = Math.max(0, place) * samples;
  return { column, values: data.subarray(start, start + samples) };
}

// The name of a sample, and its metadata by title.
export async function factsOf({ pack, state }, sample) {
  const { arrays, texts } = await pack.take("columns");
  const fact = ({ name, kind, keys }) => {
    if (kind === "text") return texts[name][sample];
    const value = arrays[name].data[sample];
    if (kind === "category") return keys[value] ?? null;
    return Number.isFinite(value) ? value : null;
  };
  const given = state.columns.filter((column) => column.given);
  return {
    name: texts.name?.[sample] ?? "",
    facts: Object.fromEntries(given.map((column) => [column.title, fact(column)])),
  };
}

// The title of a column, with the model whose numbers are shown.
export function titled({ meaning, by_model: byModel, kind }, names, model) {
  if (!byModel || names.length === 1) return meaning;
  return `${meaning}, ${model || (kind === "number" ? "mean over models" : names[0])}`;
}

// The categories as filters name them: classes by their numbers.
export const keysOf = (column, state) => column.keys ?? state.classes.map((_, c) => String(c));

// A test of samples by one clause.
export async function keptBy(context, text) {
  const { column: name, model, low, high, values: wanted } = parseClause(text);
  const { column, values } = await columnOf(context, name, model);
  if (column.kind !== "number" && !wanted) throw new Error(`filter ${name}: expected values, got a range`);
  if (column.kind === "text") {
    const words = wanted.map((word) => word.toLowerCase());
    return (i) => words.some((word) => values[i].toLowerCase().includes(word));
  }
  if (column.kind === "category") {
    const keys = keysOf(column, context.state);
    const codes = new Set(wanted.map((key) => keys.indexOf(key)).filter((code) => code >= 0));
    return (i) => codes.has(values[i]);
  }
  const numbers = wanted?.map(Number);
  return (i) => (numbers ? numbers.includes(values[i]) : values[i] >= low && values[i] <= high);
}
