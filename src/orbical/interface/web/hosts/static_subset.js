// Which samples of a report lie inside a lasso, and the best and worst of a subset.
const MOST_LISTED = 200;

// The even-odd rule for points [N, 2], as in Python.
export function insidePolygon(polygon, xy) {
  const inside = new Uint8Array(xy.length / 2);
  if (polygon.length < 3) return inside;
  for (let i = 0; i < inside.length; i++) {
    const [x, y] = [xy[2 * i], xy[2 * i + 1]];
    let [x0, y0] = polygon[polygon.length - 1];
    for (const [x1, y1] of polygon) {
      if (y0 > y !== y1 > y && x < ((x1 - x0) * (y - y0)) / (y1 - y0) + x0) inside[i] ^= 1;
      [x0, y0] = [x1, y1];
    }
  }
  return inside;
}

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
