// Calibration of a subset of a report, at one element or over whole orbits. Intervals are those that
// Python computed for all samples and for each class; a subset has values without intervals.
import { pairsAt } from "./static_aggregate.js";
import { MEASURES, cumulative, reliability } from "./static_measures.js";

const BINS = 15;
const LEAST = 3; // samples below which a measure says nothing
const POINTS = 101;
const SHOWN = ["ece", "ks", "esd"];

// The pairs of all elements with the weights of their elements.
function pairsAlong(confidence, correct, rows, model, { elements, weights }) {
  const parts = Array.from({ length: elements }, (_, k) => pairsAt(confidence, correct, rows, model, k));
  const size = parts.reduce((sum, [sure]) => sum + sure.length, 0);
  const joined = [new Float64Array(size), new Uint8Array(size), new Float64Array(size)];
  let start = 0;
  parts.forEach(([sure, right], k) => {
    joined[0].set(sure, start);
    joined[1].set(right, start);
    joined[2].fill(weights[k], start, start + sure.length);
    start += sure.length;
  });
  return joined;
}

const without = (name, value) => ({ name, value, low: null, high: null, expected: null });

function measured(pair, diagram, whole, known) {
  if (!whole) return SHOWN.map((name) => known?.(name) ?? without(name, MEASURES[name](...pair)));
  const total = diagram.weight.reduce((sum, part) => sum + part, 0);
  const gap = diagram.sums.accuracy.reduce((sum, a, b) => sum + Math.abs(a - diagram.sums.confidence[b]), 0);
  return [known?.("ece") ?? without("ece", gap / total)];
}

// What Python found for all samples, or for a class: at one element, or over whole orbits.
async function knownFor(context, whole) {
  const { classes, reference, element } = context;
  if (!classes || classes.length > 1) return null;
  const { arrays } = await context.pack.take("measures");
  const group = classes.length ? 1 + classes[0] : 0;
  return (model) => (name) => {
    const ends = arrays[`${name}/${reference}/${whole ? "orbit" : "ends"}`]; // [groups, models, 4, K or 1]
    if (!ends && !whole) return alone(arrays[`${name}/${reference}`], name, [group, model, element]);
    if (!ends || group >= ends.shape[0]) return undefined;
    const at = (i) => {
      const found = ends.data[((group * ends.shape[1] + model) * 4 + i) * ends.shape[3] + (whole ? 0 : element)];
      return Number.isFinite(found) ? found : null;
    };
    const [value, low, high, expected] = [0, 1, 2, 3].map(at);
    return value === null ? undefined : { name, value, low, high, expected };
  };
}

// A measure without an interval out of [groups, models, elements].
function alone(values, name, [group, model, element]) {
  if (!values || group >= values.shape[0]) return undefined;
  const value = values.data[(group * values.shape[1] + model) * values.shape[2] + element];
  return Number.isFinite(value) ? without(name, value) : undefined;
}

// What is drawn of all samples of the scan, where the page holds only some of them.
async function storedDiagrams(context, whole) {
  const { classes, reference, element, elements, state } = context;
  if (state.report.complete || !classes || classes.length) return null;
  const { arrays } = await context.pack.take("diagrams");
  return (model) => (name) => {
    const { data, shape } = arrays[`${reference}/${name}`]; // [models, elements and orbit, ...]
    const size = shape[2] ?? 1;
    const start = (model * shape[1] + (whole ? elements : element)) * size;
    return data.subarray(start, start + size);
  };
}

function noteOf(known, drawn) {
  if (!known) return "computed in the browser, without intervals for a subset, a filter or several classes";
  return drawn ? "" : "errors use all samples of the class, curves only those in this report";
}

export async function calibration(context) {
  if (!context.has("confidence") || !context.has("correct")) {
    return { available: false, reason: "The scan stores no confidence and correctness.", arrays: {} };
  }
  const { selection, models, names, element } = context;
  const whole = selection.scope === "orbit";
  const [confidence, correct] = [await context.values("confidence"), await context.values("correct")];
  const rows = await context.rows();
  const known = await knownFor(context, whole);
  const stored = await storedDiagrams(context, whole);
  const shares = Float64Array.from({ length: POINTS }, (_, i) => i / (POINTS - 1));
  const arrays = {
    edges: { data: Float32Array.from({ length: BINS + 1 }, (_, i) => i / BINS), shape: [BINS + 1] },
    cumulative_x: { data: Float32Array.from(shares), shape: [POINTS] },
    count: { data: new Int32Array(models.length * BINS), shape: [models.length, BINS] },
  };
  for (const name of ["confidence", "accuracy"]) {
    arrays[name] = { data: new Float32Array(models.length * BINS), shape: [models.length, BINS] };
    arrays[`cumulative_${name}`] = { data: new Float32Array(models.length * POINTS), shape: [models.length, POINTS] };
  }
  const measures = [];
  let count = 0;
  models.forEach((model, row) => {
    /** @type {any[]} */
    const [sure, right, weight] = whole
      ? pairsAlong(confidence, correct, rows, model, context)
      : pairsAt(confidence, correct, rows, model, element);
    const diagram = reliability(sure, right, BINS, weight);
    const curve = cumulative(sure, right, shares, weight);
    const all = stored?.(model);
    count = Math.max(count, all ? all("count")[0] : sure.length);
    arrays.count.data.set(all ? all("bins") : diagram.count, row * BINS);
    for (const name of ["confidence", "accuracy"]) {
      arrays[name].data.set(all ? all(name) : diagram[name], row * BINS);
      arrays[`cumulative_${name}`].data.set(all ? all(`curve_${name}`) : curve[name], row * POINTS);
    }
    if ((whole ? rows.length : sure.length) < LEAST) return;
    for (const entry of measured([sure, right], diagram, whole, known?.(model))) {
      measures.push({ model: names[model], ...entry });
    }
  });
  const note = noteOf(known, stored || context.state.report.complete);
  return {
    available: true,
    scope: selection.scope,
    element,
    count,
    measures,
    ...(note && { note }),
    models: models.map((model) => names[model]),
    arrays,
  };
}
