// The spread of a metric in a report: the quantiles that Python recorded, and the samples in its bands.
import { inBand } from "../draw/quantiles.js";
import { rowStart } from "./static_context.js";
import { axisOf, recorded, unrecorded } from "./static_recorded.js";

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
