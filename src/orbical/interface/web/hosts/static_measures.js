// Calibration measures of pairs (confidence, correct), as orbical.calibration computes them, for
// subsets that are chosen in a report. Sums are in double precision.
import { smoothEce } from "./static_smooth_ece.js";

// The numbers of a reliability diagram over equal bins (lo, hi], the first one closed at 0.
export function reliability(confidence, correct, bins, weights = null) {
  const count = new Int32Array(bins);
  const weight = new Float64Array(bins);
  const sums = { confidence: new Float64Array(bins), accuracy: new Float64Array(bins) };
  for (let i = 0; i < confidence.length; i++) {
    const z = confidence[i];
    const w = weights ? weights[i] : 1;
    let bin = Math.min(bins - 1, Math.max(0, Math.ceil(z * bins) - 1));
    if (bin > 0 && z <= bin / bins) bin -= 1;
    else if (bin < bins - 1 && z > (bin + 1) / bins) bin += 1;
    count[bin] += 1;
    weight[bin] += w;
    sums.confidence[bin] += w * z;
    sums.accuracy[bin] += w * correct[i];
  }
  const mean = (total) => Float32Array.from(total, (sum, bin) => (count[bin] ? sum / weight[bin] : NaN));
  return { count, weight, sums, confidence: mean(sums.confidence), accuracy: mean(sums.accuracy) };
}

// Expected calibration error: sum over bins of |sum of (correct - confidence)| / N.
export function ece(confidence, correct, bins = 15) {
  if (!confidence.length) return NaN;
  const { sums } = reliability(confidence, correct, bins);
  let total = 0;
  for (let bin = 0; bin < bins; bin++) total += Math.abs(sums.accuracy[bin] - sums.confidence[bin]);
  return total / confidence.length;
}

// Samples in ascending confidence: their order, and for each place the last place of equal values.
function ascending(confidence) {
  const order = Uint32Array.from(confidence, (_, i) => i).sort((a, b) => confidence[a] - confidence[b]);
  const last = new Uint32Array(order.length);
  for (let i = order.length - 1; i >= 0; i--) {
    const tied = i + 1 < order.length && confidence[order[i]] === confidence[order[i + 1]];
    last[i] = tied ? last[i + 1] : i;
  }
  return { order, last };
}

function differences(confidence, correct) {
  const { order, last } = ascending(confidence);
  const difference = Float64Array.from(order, (i) => correct[i] - confidence[i]);
  return { difference, last };
}

function cumulated(values) {
  const sums = new Float64Array(values.length);
  let sum = 0;
  for (let i = 0; i < values.length; i++) sums[i] = sum += values[i];
  return sums;
}

// Kolmogorov-Smirnov calibration error, equal confidences taken together.
export function ks(confidence, correct) {
  const { difference, last } = differences(confidence, correct);
  const sums = cumulated(difference);
  let largest = confidence.length ? 0 : NaN;
  for (let i = 0; i < sums.length; i++) {
    if (last[i] === i) largest = Math.max(largest, Math.abs(sums[i]));
  }
  return largest / confidence.length;
}

// Expected squared difference: sum of S^2 - Q over N (N - 1) (N - 2).
export function esd(confidence, correct) {
  const size = confidence.length;
  if (size < 3) return NaN;
  const { difference, last } = differences(confidence, correct);
  const sums = cumulated(difference);
  const squares = cumulated(difference.map((d) => d * d));
  let total = 0;
  for (let i = 0; i < size; i++) {
    const others = sums[last[i]] - difference[i];
    total += others * others - (squares[last[i]] - difference[i] * difference[i]);
  }
  return total / (size * (size - 1) * (size - 2));
}

// Cumulative confidence and accuracy, read at given shares of the samples in ascending confidence:
// at each share the sums up to the last threshold that no more than this share lies below.
export function cumulative(confidence, correct, shares, weights = null) {
  const { order, last } = ascending(confidence);
  const mass = Float64Array.from(order, (i) => (weights ? weights[i] : 1));
  const below = cumulated(mass);
  const total = below[below.length - 1];
  const sums = {
    confidence: cumulated(mass.map((w, place) => w * confidence[order[place]])),
    accuracy: cumulated(mass.map((w, place) => w * correct[order[place]])),
  };
  let place = 0;
  const places = Array.from(shares, (share) => {
    while (place < below.length && below[place] <= total * share + 1e-6 * mass[place]) place += 1;
    let end = place;
    while (end > 0 && last[end - 1] !== end - 1) end -= 1;
    return end;
  });
  const read = (of) => Float32Array.from(places, (end) => (total ? (end ? of[end - 1] / total : 0) : NaN));
  return { confidence: read(sums.confidence), accuracy: read(sums.accuracy) };
}

// Maximum mean calibration error with the kernel exp(-|a - b| / 0.4): on each side of a sample the
// kernel is a product, so that the sum over pairs is a decaying sum from one end to the other.
export function mmce(confidence, correct, width = 0.4) {
  const { order } = ascending(confidence);
  let [before, total, previous] = [0, 0, 0];
  for (const i of order) {
    const difference = correct[i] - confidence[i];
    before *= Math.exp((previous - confidence[i]) / width);
    total += difference * (difference + 2 * before);
    before += difference;
    previous = confidence[i];
  }
  return Math.sqrt(Math.max(0, total)) / confidence.length;
}

export const MEASURES = { ece, ks, esd, mmce, smooth_ece: smoothEce };
