// The metric over the orbit: its mean over the subset, or a measure of the subset. Values of all
// samples and of each class come from the whole scan and were computed in Python; those of a subset
// are computed here, from the samples in the report.
import { meanInterval, shareInterval } from "./static_intervals.js";
import { rowStart } from "./static_context.js";
import { MEASURES } from "./static_measures.js";

const LEAST = 3; // samples of a measure, as in Python

// Count, sum and sum of squares at one element, from the classes of the whole scan.
function sumsOfClasses(tally, classes, model, k, elements) {
  const { count, mean, variance } = tally;
  const sums = { count: 0, total: 0, squares: 0 };
  for (const one of classes) {
    const place = ((count.shape[0] > 1 ? model : 0) * count.shape[1] + one) * elements + k;
    const [n, m] = [count.data[place], mean.data[place]];
    if (!n) continue;
    sums.count += n;
    sums.total += n * m;
    sums.squares += n * (variance.data[place] + m * m);
  }
  return sums;
}

function sumsOfRows({ data, shape }, rows, model, k) {
  const sums = { count: 0, total: 0, squares: 0 };
  for (const row of rows) {
    const value = data[rowStart(shape, model, row) + k];
    if (Number.isNaN(value)) continue;
    sums.count += 1;
    sums.total += value;
    sums.squares += value * value;
  }
  return sums;
}

async function means(context) {
  const { metric, models, elements, classes: chosen } = context;
  let sumsAt;
  let count;
  const { arrays: tables, members } = await context.pack.take("tallies");
  const name = `${metric.name}/${context.reference}`;
  const [held, mean, variance] = ["count", "mean", "variance"].map((part) => tables[`${name}/${part}`]);
  const apart = held.shape[1] > 1 || !chosen?.length; // with very many classes they are not
  if (!chosen || !apart) {
    const [values, rows] = [await context.values(metric.name), await context.rows()];
    count = rows.length;
    sumsAt = (model, k) => sumsOfRows(values, rows, model, k);
  } else {
    const all = Array.from({ length: held.shape[1] }, (_, i) => i);
    const classes = chosen.length ? chosen.filter((one) => one < all.length) : all;
    count = (chosen.length ? classes : members.map((_, i) => i)).reduce((sum, one) => sum + members[one], 0);
    sumsAt = (model, k) => sumsOfClasses({ count: held, mean, variance }, classes, model, k, elements);
  }
  const arrays = {};
  for (const name of ["values", "low", "high"]) {
    arrays[name] = { data: new Float32Array(models.length * elements), shape: [models.length, elements] };
  }
  const interval = metric.unit === "share" ? shareInterval : meanInterval;
  models.forEach((model, row) => {
    for (let k = 0; k < elements; k++) {
      const [value, low, high] = interval(sumsAt(model, k));
      arrays.values.data[row * elements + k] = value;
      arrays.low.data[row * elements + k] = Math.max(low, metric.low ?? -Infinity); // no distance is below zero
      arrays.high.data[row * elements + k] = high;
    }
  });
  return { count, arrays };
}

// Confidence and correctness of some samples at one element; those without an answer that could be
// judged are left out.
export function pairsAt(confidence, correct, rows, model, k) {
  /** @type {number[][]} */
  const [sure, right] = [[], []];
  for (const row of rows) {
    const z = confidence.data[rowStart(confidence.shape, model, row) + k];
    const y = correct.data[rowStart(correct.shape, model, row) + k];
    if (Number.isNaN(z) || Number.isNaN(y)) continue;
    sure.push(z);
    right.push(y);
  }
  return [Float64Array.from(sure), Uint8Array.from(right)];
}

// A row of each model shown out of [groups, models, parts, K].
function tableRows({ data, shape }, group, part, { models, elements }) {
  const parts = shape.length === 4 ? shape[2] : 1;
  const found = new Float32Array(models.length * elements);
  models.forEach((model, row) => {
    const start = ((group * shape[1] + model) * parts + part) * elements;
    found.set(data.subarray(start, start + elements), row * elements);
  });
  return { data: found, shape: [models.length, elements] };
}

async function measures(context) {
  const { metric, models, elements, classes, reference } = context;
  const { arrays: tables, members } = await context.pack.take("measures");
  const name = `${metric.name}/${reference}`;
  const group = classes?.length ? 1 + classes[0] : 0;
  if (classes && classes.length < 2 && group < tables[name].shape[0]) {
    const arrays = { values: tableRows(tables[name], group, 0, context) };
    const ends = tables[`${name}/ends`]; // value, low, high, and the value under calibration
    if (ends) ["low", "high"].forEach((end, i) => (arrays[end] = tableRows(ends, group, 1 + i, context)));
    return { count: members[group], arrays };
  }
  const rows = await context.rows();
  const [confidence, correct] = [await context.values("confidence"), await context.values("correct")];
  const values = new Float32Array(models.length * elements);
  models.forEach((model, row) => {
    for (let k = 0; k < elements; k++) {
      const pair = pairsAt(confidence, correct, rows, model, k);
      values[row * elements + k] = pair[0].length >= LEAST ? MEASURES[metric.name](...pair) : NaN;
    }
  });
  return { count: rows.length, arrays: { values: { data: values, shape: [models.length, elements] } } };
}

export function axisOf({ low, high }, values) {
  const seen = values.filter((value) => Number.isFinite(value));
  const least = low ?? (seen.length ? seen.reduce((a, b) => Math.min(a, b)) : 0);
  const most = high ?? (seen.length ? seen.reduce((a, b) => Math.max(a, b)) : 1);
  return [least, most > least ? most : least + 1];
}

export async function aggregate(context) {
  const { metric, models, names, reference } = context;
  const found = await (metric.per_sample ? means : measures)(context);
  return {
    ...found,
    metric: metric.name,
    models: models.map((model) => names[model]),
    range: axisOf(metric, found.arrays.values.data),
    reference,
  };
}
