// The calibration of one model in numbers and in a word.

/** Mean confidence and accuracy over the bins of one model. */
export function means({ count, confidence, accuracy }, m) {
  const bins = count.shape[1];
  let [total, sure, right] = [0, 0, 0];
  for (let b = m * bins; b < (m + 1) * bins; b += 1) {
    if (!count.data[b]) continue;
    total += count.data[b];
    sure += count.data[b] * confidence.data[b];
    right += count.data[b] * accuracy.data[b];
  }
  return { confidence: sure / total, accuracy: right / total };
}

export const UNDETECTED = "no error detected";

/** Over-confident, under-confident, or that the samples show no error; they cannot show that there is none. */
export function verdict({ confidence, accuracy }, { value, expected, low }) {
  if (!Number.isFinite(value)) return "–";
  const detected = low === null || low === undefined ? value > (expected ?? 0) + 0.02 : low > 0;
  if (!detected) return UNDETECTED;
  const gap = confidence - accuracy;
  if (Math.abs(gap) < value / 3) return "miscalibrated";
  return gap > 0 ? "over-confident" : "under-confident";
}
