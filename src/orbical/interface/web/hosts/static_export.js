// Tables to take away from a report: the numbers on show as CSV, and the samples of the subset.
import { aggregate } from "./static_aggregate.js";
import { sample } from "./static_samples.js";

// eslint-disable-next-line no-control-regex
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
// As the Python package writes tables: no control characters, and no formula for a spreadsheet to run.
const plain = (text) => text.replace(UNSAFE, "?").replace(/^[=+@-]/, "'$&");
const quoted = (cell) => {
  const text = typeof cell === "string" ? plain(cell) : String(cell);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
export const table = (rows) => `${rows.map((row) => row.map(quoted).join(",")).join("\n")}\n`;
const shown = (value) => (Number.isFinite(value) ? Number(value.toPrecision(7)) : "");

// The place of each element: its number and its coordinates.
function places({ state, elements }) {
  const names = Object.keys(state.group.coords);
  const head = ["element", ...names];
  const rows = Array.from({ length: elements }, (_, k) => [k, ...names.map((name) => state.group.coords[name][k])]);
  return { head, rows };
}

async function csv(context) {
  const { models, names, metric, selection, elements } = context;
  const { head, rows } = places(context);
  const whole = await aggregate(context);
  const one = await sample(context);
  const columns = models.flatMap((model, row) => [
    ...["values", "low", "high"]
      .filter((part) => whole.arrays[part]) // a measure of another subset is not in the report
      .map((part) => ({
        title: `${metric.name}${part === "values" ? "" : `_${part}`}_${names[model]}`,
        data: whole.arrays[part].data.subarray(row * elements),
      })),
    { title: `sample_${selection.sample}_${names[model]}`, data: one.arrays.values.data.subarray(row * elements) },
  ]);
  const body = rows.map((row, k) => [...row, ...columns.map(({ data }) => shown(data[k]))]);
  return ["orbical.csv", "text/csv", table([[...head, ...columns.map(({ title }) => title)], ...body])];
}

async function indices(context) {
  const original = context.state.arrays.original.data;
  const rows = await context.rows();
  return ["orbical-samples.txt", "text/plain", table(rows.map((row) => [original[row]]))];
}

const FILES = { csv, indices };

export async function exported(context, { what }) {
  if (!(what in FILES)) {
    throw new Error(`a report cannot export ${what}; use orbical view or the Python package`);
  }
  const [filename, type, text] = await FILES[what](context);
  const data = new TextEncoder().encode(text);
  return { filename, type, arrays: { file: { data, shape: [data.length] } } };
}
