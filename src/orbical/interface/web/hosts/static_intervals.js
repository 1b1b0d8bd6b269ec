// Means with their 95 % intervals, from count, sum and sum of squares, as the session computes them.

const DEVIATIONS = 1.959964; // standard errors to either side of a mean that hold 95 %

function moments({ count, total, squares }) {
  const mean = total / count;
  const freedom = count > 1 ? count - 1 : NaN; // one sample has no interval
  return { mean, variance: Math.max(0, squares - count * mean * mean) / freedom };
}

export function meanInterval(sums) {
  const { mean, variance } = moments(sums);
  const reach = DEVIATIONS * Math.sqrt(variance / sums.count);
  return [mean, mean - reach, mean + reach];
}

// Wilson's interval of values in [0, 1], with as many samples as have the variance that is seen.
export function shareInterval(sums) {
  const { mean, variance } = moments(sums);
  if (Number.isNaN(variance)) return [mean, NaN, NaN];
  const worth = variance > 1e-12 ? Math.max((mean * (1 - mean)) / variance, 1) : 1;
  const [size, square] = [sums.count * worth, DEVIATIONS ** 2];
  const middle = (mean * size + square / 2) / (size + square);
  const spread = Math.max(mean * size * (1 - mean), 0) + square / 4;
  const reach = Math.sqrt(square * spread) / (size + square);
  return [mean, Math.max(middle - reach, 0), Math.min(middle + reach, 1)];
}
