// The subset of a report as a mask, and its best and worst samples.
const MOST_LISTED = 200;

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

export async function list(context) {
  const { selection, perSample, samples } = context;
  const { mean, variance, models } = await context.moments(perSample.name);
  const variable = selection.order === "variable";
  const values = overModels({ data: variable ? variance : mean, models }, context.of, samples);
  const upward = perSample.higher_is_better !== false;
  const sign = variable || (selection.order === "best") === upward ? -1 : 1;
  const order = (await context.rows())
    .filter((i) => Number.isFinite(values[i]))
    .sort((a, b) => sign * (values[a] - values[b]) || a - b)
    .slice(0, MOST_LISTED);
  return {
    order: selection.order,
    metric: perSample.name,
    count: order.length,
    arrays: {
      samples: { data: Int32Array.from(order), shape: [order.length] },
      values: { data: Float32Array.from(order, (i) => values[i]), shape: [order.length] },
    },
  };
}
