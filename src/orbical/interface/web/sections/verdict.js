// The calibration of one model in numbers and in a word.

/**
 * Mean confidence and accuracy over the bins of one model, and `noise`: how far apart they would be by chance, as a
 * standard deviation, if the model were calibrated. Predictions for one of the `samples` may all be alike.
 */
export function means({ count, confidence, accuracy }, m, samples = Infinity) {
  const bins = count.shape[1];
  let [total, sure, right, variance] = [0, 0, 0, 0];
  for (let b = m * bins; b < (m + 1) * bins; b += 1) {
    if (!count.data[b]) continue;
    total += count.data[b];
    sure += count.data[b] * confidence.data[b];
    right += count.data[b] * accuracy.data[b];
    variance += count.data[b] * confidence.data[b] * (1 - confidence.data[b]);
  }
  const noise = Math.sqrt(variance / total / Math.min(samples, total));
  return { confidence: sure / total, accuracy: right / total, noise };
}

export const UNDETECTED = "no error detected";

const FAR = 2.24; // standard deviations: the interval and this test together err once in twenty

/**
 * Overconfident, underconfident, or that the samples show no error; they cannot show that there is none. The error
 * is at least the difference of the means, which few samples show better than its interval does.
 */
export function verdict({ confidence, accuracy, noise = Infinity }, { value, expected, low }) {
  if (!Number.isFinite(value)) return "–";
  const gap = confidence - accuracy;
  const positive = low === null || low === undefined ? value > (expected ?? 0) + 0.02 : low > 0;
  if (!positive && !(Math.abs(gap) > FAR * noise)) return UNDETECTED;
  if (Math.abs(gap) < value / 3) return "miscalibrated";
  return gap > 0 ? "overconfident" : "underconfident";
}
