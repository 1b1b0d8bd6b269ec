// Histograms of columns of a report, of all samples and of those that the other clauses keep.
import { parseClause } from "../core/clauses.js";
import { robustEnds } from "./static_colors.js";
import { columnOf, keysOf } from "./static_columns.js";

const BINS = 24;

// Bins of equal width; values beyond the ends are in the first and the last, endless ones in their own.
export function numericBins(values, ends) {
  const [low, high] = ends ?? robustEnds(values);
  const distinct = new Set(values.filter((value) => Number.isFinite(value))).size;
  const count = Math.min(BINS, Math.max(1, distinct));
  const width = high > low ? (high - low) / count : 1;
  const binOf = (value) => {
    if (Number.isNaN(value)) return -1;
    if (value === Infinity) return count;
    return Math.floor(Math.min(Math.max((value - low) / width, 0), count - 1));
  };
  return {
    codes: Array.from(values, binOf),
    count: count + Number(values.some((value) => value === Infinity)),
    edges: Array.from({ length: count + 1 }, (_, edge) => low + width * edge),
  };
}

function counted({ codes, count }, rows) {
  const data = new Int32Array(count);
  for (const row of rows) if (codes[row] >= 0) data[codes[row]] += 1;
  return { data, shape: [count] };
}

export async function columns(context, { columns: asked = [] }) {
  const { state, selection, samples } = context;
  const arrays = {};
  /** @type {any[]} */
  const about = [];
  const all = Array.from({ length: samples }, (_, i) => i);
  for (const [place, { column: name, model = "" }] of asked.entries()) {
    const { column, values } = await columnOf(context, name, model);
    if (column.kind === "text") {
      about.push({ column: name, model });
      continue;
    }
    const bins =
      column.kind === "category"
        ? { codes: values, count: keysOf(column, state).length, edges: null }
        : numericBins(values, column.ends);
    const others = selection.filter.filter((text) => {
      const clause = parseClause(text);
      return clause.column !== name || clause.model !== model;
    });
    const rows = await context.rows(others);
    arrays[`${place}/all`] = counted(bins, all);
    arrays[`${place}/kept`] = counted(bins, rows);
    about.push({ column: name, model, edges: bins.edges });
  }
  return { columns: about, arrays };
}
