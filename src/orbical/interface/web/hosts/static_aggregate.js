// The metric over the orbit: recorded by Python, or the plain mean of the samples of a subset in the report.
import { rowStart } from "./static_context.js";
import { axisOf, recorded, unrecorded } from "./static_recorded.js";

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
  return {
    count: rows.length,
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
