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
