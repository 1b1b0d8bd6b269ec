// What Python recorded of a subset: answers of the session, picked here and never computed.
import { parseClause, writeClause } from "../core/clauses.js";
import { groupColumns } from "../core/selection_rules.js";
import { inBand } from "../draw/quantiles.js";
import { columnOf, keysOf, titled } from "./static_columns.js";
import { rowStart } from "./static_context.js";

const SHARED = ["edges", "cumulative_x"]; // arrays that are the same for all models

// One answer of a stack [n, M, ...], of the models shown.
function picked({ data, shape: [, ...shape] }, place, models) {
  const size = shape.reduce((product, length) => product * length, 1);
  const answer = data.subarray(place * size, (place + 1) * size);
  if (!models) return { data: answer, shape };
  const row = size / shape[0];
  const found = new data.constructor(models.length * row);
  models.forEach((model, i) => found.set(answer.subarray(model * row, (model + 1) * row), i * row));
  return { data: found, shape: [models.length, ...shape.slice(1)] };
}

async function answersOf({ pack, state, selection }) {
  const asked = JSON.stringify([[...selection.filter].sort(), selection.subset]);
  const number = state.report.subsets.findIndex((key) => JSON.stringify(key) === asked);
  return number < 0 ? { answers: {} } : pack.take(`subset/${number}`);
}

// The answer of a kind that was recorded for the subset on show, or null; calibration has one at each place.
export async function recorded(context, kind, { metric = context.metric, place = 0 } = {}) {
  const { state, selection, reference, models, names } = context;
  const { answers, arrays: held } = await answersOf(context);
  const fields = { reference, metric: metric.name, scope: selection.scope };
  const name = [kind, ...state.report.recorded[kind].map((field) => fields[field])].join("/");
  if (!answers[name]) return null;
  const about = { ...answers[name][place] };
  const shown = models.map((model) => names[model]);
  if (about.models) about.models = shown;
  if (about.measures) about.measures = about.measures.filter(({ model }) => shown.includes(model));
  const arrays = {};
  for (const [key, array] of Object.entries(held)) {
    const part = key.slice(name.length + 1);
    if (key === `${name}:${part}`) arrays[part] = picked(array, place, SHARED.includes(part) ? null : models);
  }
  return { ...about, arrays };
}

// Why there is no answer for the subset on show.
export function unrecorded({ state }, what) {
  const reason =
    `this report has the ${what} of all ${state.noun}, of classes, of named sets and of findings, ` +
    "not of this subset; open the scan with orbical view";
  return { available: false, reason, arrays: {} };
}

export function axisOf({ low, high }, values) {
  const seen = values.filter((value) => Number.isFinite(value));
  const least = low ?? (seen.length ? seen.reduce((a, b) => Math.min(a, b)) : 0);
  const most = high ?? (seen.length ? seen.reduce((a, b) => Math.max(a, b)) : 1);
  return [least, most > least ? most : least + 1];
}

export async function calibration(context) {
  const { selection, element, elements, state } = context;
  if (!state.calibration) {
    return { available: false, reason: "the scan stores no confidence and correctness", arrays: {} };
  }
  const place = selection.scope === "orbit" ? elements : element;
  const found = (await recorded(context, "calibration", { place })) ?? unrecorded(context, "calibration");
  return { ...found, element };
}

export const consistency = async (context) =>
  (await recorded(context, "consistency")) ?? unrecorded(context, "predictions that change");

export const coverage = async (context) =>
  (await recorded(context, "coverage")) ?? unrecorded(context, "coverage of sets");

// The subset of a report as a mask.
export async function subset(context) {
  const rows = await context.rows();
  const mask = new Uint8Array(context.samples);
  for (const row of rows) mask[row] = 1;
  return { count: rows.length, arrays: { mask: { data: mask, shape: [mask.length] } } };
}

// The mean of some models' numbers [M, N] for each sample, over those that have one.
export function overModels({ data, models }, of, samples) {
  const chosen = models > 1 ? of : [0];
  return Float32Array.from({ length: samples }, (_, i) => {
    const seen = chosen.map((model) => data[model * samples + i]).filter(Number.isFinite);
    return seen.reduce((sum, value) => sum + value, 0) / seen.length;
  });
}

const NOTE = "of those in this report, without an interval";

// The mean at each element, over the samples that have a value.
async function meansOf(context) {
  const { metric, models, elements, names, reference } = context;
  const [{ data, shape }, rows] = [await context.values(metric.name), await context.rows()];
  const values = new Float32Array(models.length * elements);
  models.forEach((model, m) => {
    for (let k = 0; k < elements; k++) {
      const seen = rows.map((row) => data[rowStart(shape, model, row) + k]).filter(Number.isFinite);
      values[m * elements + k] = seen.reduce((sum, value) => sum + value, 0) / seen.length;
    }
  });
  const count = context.judged(rows).length;
  return {
    count,
    ...(count < rows.length && { failed: rows.length - count }),
    metric: metric.name,
    models: models.map((model) => names[model]),
    reference,
    note: NOTE,
    arrays: { values: { data: values, shape: [models.length, elements] } },
  };
}

export async function aggregate(context) {
  const { metric } = context;
  const found = (await recorded(context, "aggregate")) ?? (metric.report === "any subset" && (await meansOf(context)));
  if (!found) return unrecorded(context, metric.title);
  return { ...found, range: axisOf(metric, found.arrays.values.data) };
}

// The metric whose spread is shown: outcomes that are right or wrong have none, nor have measures.
const metricOf = ({ state, metric }) => state.metrics.find(({ name }) => name === state.report.spread_of[metric.name]);

export async function spread(context) {
  const metric = metricOf(context);
  const found = await recorded(context, "spread", { metric });
  if (!found) return unrecorded(context, "spread");
  return { ...found, range: axisOf(metric, found.arrays.quantiles.data) };
}

// The samples of the report in a band of the fan at the selected element.
export async function rowsInBand(context, { model, band }) {
  const [{ data, shape }, rows] = [await context.values(metricOf(context).name), await context.rows()];
  const m = context.models.indexOf(context.names.indexOf(model));
  const { quantiles } = (await spread(context)).arrays;
  const [, levels, elements] = quantiles.shape;
  const ends = Array.from({ length: levels }, (_, q) => quantiles.data[(m * levels + q) * elements + context.element]);
  const at = (row) => data[rowStart(shape, context.models[m], row) + context.element];
  return rows.filter((row) => Number.isFinite(at(row)) && inBand(band, ends, at(row)));
}

const FIRST = 12;

// The mean of the numbers that there are, by which the worst group comes first; none comes last.
function badness({ higher_is_better: better }, values) {
  const seen = values.filter(Number.isFinite);
  if (!seen.length) return Infinity;
  return ((better === false ? -1 : 1) * seen.reduce((sum, value) => sum + value, 0)) / seen.length;
}

export async function classes(context, { most = FIRST }) {
  const { selection, state, metric, models, names, elements } = context;
  const known = groupColumns(state);
  if (!known.length) throw new Error("show: expected a column of categories for groups, got a scan without");
  const { name } = known.find((column) => column.name === selection.by) ?? known[0];
  // A filter by the column itself is left out: the group that was chosen keeps the others beside it.
  const others = selection.filter.filter((text) => parseClause(text).column !== name);
  const { column, values: codes } = await columnOf(context, name);
  const keys = keysOf(column, state);
  const members = keys.map(() => []);
  for (const row of await context.rows(others)) members[codes[row]]?.push(row);
  const found = [];
  for (const [code, key] of keys.entries()) {
    const filter = [...others, writeClause({ column: name, values: [key] })];
    const answer = await aggregate({
      ...context,
      selection: { ...selection, filter },
      rows: async () => members[code],
    });
    if (answer.available === false) return answer;
    const { count, arrays } = answer;
    if (!count) continue;
    found.push({
      key,
      name: column.keys ? key : String(state.classes[code]),
      count,
      values: arrays.values.data,
      rank: badness(metric, arrays.values.data),
    });
  }
  if (found.length > FIRST) found.sort((one, other) => one.rank - other.rank);
  const shown = found.slice(0, most);
  const data = new Float32Array(shown.length * models.length * elements);
  shown.forEach(({ values }, g) => data.set(values, g * models.length * elements));
  return {
    column: name,
    groups: shown.map((one) => ({ key: one.key, name: one.name, count: one.count })),
    total: found.length,
    metric: metric.name,
    models: models.map((model) => names[model]),
    range: axisOf(
      metric,
      found.flatMap(({ values }) => [...values]),
    ),
    reference: context.reference,
    arrays: { values: { data, shape: [shown.length, models.length, elements] } },
  };
}

const TAIL = 1.5; // widths of the middle 98 %, beyond which numbers are drawn as its ends

// The ends of a scale: the range of the values, without tails that are far away.
export function robustEnds(values) {
  const seen = values.filter((value) => Number.isFinite(value)).sort();
  if (!seen.length) return [0, 1];
  const at = (share) => {
    const place = share * (seen.length - 1);
    const [k, part] = [Math.floor(place), place % 1];
    return seen[k] + part * (seen[Math.min(k + 1, seen.length - 1)] - seen[k]);
  };
  const [low, high, least, most] = [at(0.01), at(0.99), seen[0], seen[seen.length - 1]];
  const reach = TAIL * (high - low);
  return [least >= low - reach ? least : low, most <= high + reach ? most : high];
}

async function ofMetric(context) {
  const { perSample: metric, selection } = context;
  const found = await context.moments(metric.name);
  const spread = selection.color === "variance";
  const values = overModels({ data: found[selection.color], models: found.models }, context.of, context.samples);
  const range = spread ? [0, robustEnds(values)[1]] : metric.unit === "share" ? [0, 1] : robustEnds(values);
  const title = `${metric.title}, ${selection.color} over the orbit`;
  return { values, scale: "sequential", range, title, higher_is_better: spread ? false : metric.higher_is_better };
}

async function ofColumn(context) {
  const { selection, names, state } = context;
  const { column, values } = await columnOf(context, selection.color, selection.of);
  const title = titled(column, names, selection.of);
  if (column.kind === "category") {
    const range = [0, keysOf(column, state).length - 1];
    return { values: Float32Array.from(values), scale: "classes", range, title, names: column.keys };
  }
  const range = column.ends ?? robustEnds(values);
  const scale = range[0] === -1 ? "diverging" : "sequential";
  return {
    values: values.map((value) => (value === Infinity ? range[1] : value)),
    scale,
    range,
    title,
    unit: column.unit,
  };
}

export async function color(context) {
  const { values, ...about } = await (["mean", "variance"].includes(context.selection.color) ? ofMetric : ofColumn)(
    context,
  );
  return { ...about, arrays: { values: { data: values, shape: [values.length] } } };
}

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
  // By the metric, samples that are unfinished are left out; those that failed come last.
  const every = await context.rows();
  const unfinished = new Set(byMetric ? context.judged(every).filter((i) => !Number.isFinite(values[i])) : []);
  const rows = every.filter((i) => !unfinished.has(i));
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
