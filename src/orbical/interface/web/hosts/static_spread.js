// The spread of a metric in a report: quantiles of all samples of the scan were computed in Python;
// those of a subset are computed here, from the samples in the report.
import { inBand, quantilesOf } from "../draw/quantiles.js";
import { axisOf } from "./static_aggregate.js";
import { rowStart } from "./static_context.js";

export const LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95];

// The metric whose spread is shown: outcomes that are right or wrong have none, nor have measures.
function spreadMetric({ state, metric, perSample }) {
  return state.report.outcomes.includes(metric.name) ? state.metrics[0] : perSample;
}

function quantilesAt({ data, shape }, rows, model, k) {
  const known = rows.map((row) => data[rowStart(shape, model, row) + k]).filter(Number.isFinite);
  return quantilesOf(Float32Array.from(known).sort(), LEVELS);
}

export async function spread(context) {
  const { models, names, elements, reference, state, pack } = context;
  const metric = spreadMetric(context);
  const every = context.classes?.length === 0;
  const shape = [models.length, LEVELS.length, elements];
  const found = new Float32Array(shape[0] * shape[1] * shape[2]);
  let count;
  if (every && !state.report.complete) {
    const known = await pack.take("spread");
    const { data } = known.arrays[`${metric.name}/${reference}`]; // [M, 5, K]
    count = known.count;
    const size = LEVELS.length * elements;
    models.forEach((model, m) => found.set(data.subarray(model * size, (model + 1) * size), m * size));
  } else {
    const [values, rows] = [await context.values(metric.name), await context.rows()];
    count = rows.length;
    models.forEach((model, m) => {
      for (let k = 0; k < elements; k += 1) {
        quantilesAt(values, rows, model, k).forEach(
          (value, q) => (found[(m * LEVELS.length + q) * elements + k] = value),
        );
      }
    });
  }
  const partial = !every && !state.report.complete;
  return {
    count,
    metric: metric.name,
    models: models.map((model) => names[model]),
    levels: LEVELS,
    range: axisOf(metric, found),
    reference,
    ...(partial && { note: "quantiles of the samples in this report" }),
    arrays: { quantiles: { data: found, shape } },
  };
}

// The samples of the report in a band of the fan at the selected element.
export async function rowsInBand(context, { model, band }) {
  const metric = spreadMetric(context);
  const [values, rows] = [await context.values(metric.name), await context.rows()];
  const m = context.models.indexOf(context.names.indexOf(model));
  const { quantiles } = (await spread(context)).arrays;
  const ends = LEVELS.map((_, q) => quantiles.data[(m * LEVELS.length + q) * context.elements + context.element]);
  const at = (row) => values.data[rowStart(values.shape, context.models[m], row) + context.element];
  return rows.filter((row) => Number.isFinite(at(row)) && inBand(band, ends, at(row)));
}
