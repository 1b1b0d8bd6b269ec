/** The bands of a fan of quantiles: their names, their ends, and which one a value lies in. */

/** From the lowest samples to the highest, by the quantiles (5, 25, 50, 75, 95 %) at their ends. */
export const BANDS = [
  { name: "lowest 5 %", short: "low 5 %", low: null, high: 0 },
  { name: "5 to 25 %", short: "to 25 %", low: 0, high: 1 },
  { name: "middle half", short: "to 75 %", low: 1, high: 3 },
  { name: "75 to 95 %", short: "to 95 %", low: 3, high: 4 },
  { name: "highest 5 %", short: "top 5 %", low: 4, high: null },
];
const MIDDLE = 2;

/** The bands around a curve, from outside to inside, each with its looks: an interval, or a fan. */
export function bandsOf({ low, high, inner }, color) {
  if (!low || !high) return [];
  const look = (opacity, rim = {}) => ({ fill: color, "fill-opacity": opacity, ...rim });
  if (!inner) return [{ low, high, look: look(0.2) }];
  const rim = { stroke: color, "stroke-width": 1, "stroke-opacity": 0.7 };
  return [
    { low, high, look: look(0.1, rim) },
    { low: inner[0], high: inner[1], look: look(0.22) },
  ];
}

/** Quantiles [M, 5, K] as five arrays [M, K], flat. */
export function quantileRows({ data, shape }) {
  const [models, levels, elements] = shape;
  return Array.from({ length: levels }, (_, q) => {
    const found = new Float32Array(models * elements);
    for (let m = 0; m < models; m += 1) {
      const start = (m * levels + q) * elements;
      found.set(data.subarray(start, start + elements), m * elements);
    }
    return found;
  });
}

/** What a band holds, in words. */
export function bandWords(band, ends, format) {
  const { low, high } = BANDS[band];
  if (low === null) return `${format(ends[high])} or less`;
  if (high === null) return `${format(ends[low])} or more`;
  return `${format(ends[low])} to ${format(ends[high])}`;
}

/** The outer end of a band, where there is room for one only. */
export function bandEnd(band, ends, format) {
  const { low, high } = BANDS[band];
  return high === null ? `≥\u202f${format(ends[low])}` : `≤\u202f${format(ends[high])}`;
}

/** Whether a value lies in a band; values equal to an end belong to the outer band. */
export function inBand(band, ends, value) {
  const { low, high } = BANDS[band];
  const above = low === null || (low > MIDDLE ? value >= ends[low] : value > ends[low]);
  return above && (high === null || (high < MIDDLE ? value <= ends[high] : value < ends[high]));
}

/** The band of a value at an element, of the model whose fan holds it or is nearest; narrow fans first. */
export function bandOf({ data, shape }, element, value) {
  const [models, levels, elements] = shape;
  let best = null;
  for (let m = 0; m < models; m += 1) {
    const ends = Array.from({ length: levels }, (_, q) => data[(m * levels + q) * elements + element]);
    if (!ends.every(Number.isFinite)) continue;
    const off = Math.max(ends[0] - value, value - ends[levels - 1], 0);
    const wide = ends[levels - 1] - ends[0];
    if (best && (off > best.off || (off === best.off && wide >= best.wide))) continue;
    best = { m, off, wide, band: BANDS.findIndex((_, band) => inBand(band, ends, value)) };
  }
  return best && { m: best.m, band: Math.max(best.band, 0) };
}
