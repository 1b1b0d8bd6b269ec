// The list of the subset of a report: sorted by the metric or by a column, a page at a time.
import { columnOf, titled } from "./static_columns.js";
import { overModels } from "./static_subset.js";

const PAGE = 200;
const MOST_ON_PAGE = 1000;

// The numbers that the list is sorted by, whether they fall, their title and unit.
async function sortedBy(context) {
  const { selection, perSample, samples, names } = context;
  if (["worst", "best", "variable"].includes(selection.order)) {
    const { mean, variance, models } = await context.moments(perSample.name);
    const variable = selection.order === "variable";
    const values = overModels({ data: variable ? variance : mean, models }, context.of, samples);
    const upward = perSample.higher_is_better !== false;
    return {
      values,
      falling: variable || (selection.order === "best") === upward,
      title: `${perSample.title}, ${variable ? "variance" : "mean"} over the orbit`,
      unit: variable && perSample.unit !== "share" ? "number" : perSample.unit,
    };
  }
  const { column, values } = await columnOf(context, selection.order.replace(/^-/, ""), selection.of);
  const title = titled(column, names, selection.of);
  return { values, falling: selection.order.startsWith("-"), title, unit: column.unit };
}

export async function list(context, { start = 0, count = PAGE } = {}) {
  const { values, falling, title, unit } = await sortedBy(context);
  const byMetric = ["worst", "best", "variable"].includes(context.selection.order);
  // By the metric, samples that are unfinished are left out.
  const rows = (await context.rows()).filter((i) => !byMetric || Number.isFinite(values[i]));
  // Samples without a number come last.
  const key = (i) => (Number.isNaN(values[i]) ? Infinity : falling ? -values[i] : values[i]);
  const missing = (i) => Number(Number.isNaN(values[i]));
  const order = rows.sort((a, b) => missing(a) - missing(b) || compare(key(a), key(b)) || a - b);
  const page = order.slice(start, start + Math.min(count, MOST_ON_PAGE));
  return {
    order: context.selection.order,
    metric: context.perSample.name,
    count: page.length,
    start,
    total: order.length,
    title,
    unit,
    arrays: {
      samples: { data: Int32Array.from(page), shape: [page.length] },
      values: { data: Float32Array.from(page, (i) => values[i]), shape: [page.length] },
    },
  };
}

// Endless numbers have no difference.
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
