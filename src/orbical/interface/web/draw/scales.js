/** From numbers to places and back: scales, round ticks, borders of cells. */

/** Keep a value between two ends. */
export function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** A linear scale from `[low, high]` to `[start, stop]`, with its inverse `.invert`. */
export function linear(/** @type {number[]} */ [low, high], /** @type {number[]} */ [start, stop]) {
  const factor = high === low ? 0 : (stop - start) / (high - low);
  const scale = (value) => start + (value - low) * factor;
  scale.invert = (place) => (factor === 0 ? low : low + (place - start) / factor);
  scale.domain = [low, high];
  scale.range = [start, stop];
  return scale;
}

/** A logarithmic scale, with its inverse. */
export function logarithmic(/** @type {number[]} */ [low, high], range) {
  const inner = linear([Math.log(low), Math.log(high)], range);
  const scale = (value) => inner(Math.log(value));
  scale.invert = (place) => Math.exp(inner.invert(place));
  scale.domain = [low, high];
  scale.range = range;
  return scale;
}

/** Round values from low to high, at most about `count` of them: steps 1, 2, 2.5, 5. */
export function ticks(low, high, count = 5) {
  if (!(high > low) || !Number.isFinite(high - low)) return Number.isFinite(low) ? [low] : [];
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 2.5, 5].find((each) => each * power >= rough * 0.9999) ?? 10;
  const step = factor * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const found = [];
  for (let place = first; place <= last; place += 1) found.push(Number((place * step).toPrecision(12)));
  return found;
}

/** The values at which a polar plot has rings: above its center, up to its rim. */
export function rings(low, high, count = 4) {
  return ticks(low, high, count).filter((value) => value > low + 1e-9 * (high - low));
}

/** The borders of cells from their centers. */
export function edges(centers) {
  const n = centers.length;
  if (n === 1) return [centers[0] - 0.5, centers[0] + 0.5];
  const inner = Array.from({ length: n - 1 }, (_, i) => (centers[i] + centers[i + 1]) / 2);
  return [2 * centers[0] - inner[0], ...inner, 2 * centers[n - 1] - inner[n - 2]];
}

/** Whether equal ratios describe the places better than equal steps. */
export function isGeometric(places) {
  if (places.length < 3 || !places.every((place) => place > 0)) return false;
  const spread = (of) => {
    const steps = places.slice(1).map((place, i) => of(place) - of(places[i]));
    return Math.max(...steps) - Math.min(...steps);
  };
  return spread(Math.log) < spread((value) => value);
}

/** The range of the values that are numbers: from zero where all lie on one side of it. */
export function rangeOf(values) {
  let low = 0;
  let high = 0;
  let seen = false;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    seen = true;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return seen && high > low ? [low, high] : [0, 1];
}

const [CUT, FAR, TIMES, DIVERGED, MANY, ROUNDING] = [0.02, 1, 10, 100, 500, 1e-9];

/** The ends of some numbers without tails that are far away; percentiles of many are those of every n-th. */
function robustEnds(values) {
  const step = Math.ceil(values.length / MANY);
  const some = [];
  let [least, most] = [Infinity, -Infinity];
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    if (!Number.isFinite(value)) continue;
    if (value < least) least = value;
    if (value > most) most = value;
    if (i % step === 0) some.push(value);
  }
  if (!some.length) return least <= most ? [least, most] : null;
  some.sort((a, b) => a - b);
  const at = (share) => some[Math.round(share * (some.length - 1))];
  const [low, high] = [at(CUT), at(1 - CUT)];
  const reach = FAR * (high - low);
  return [least >= low - reach ? least : low, most <= high + reach ? most : high];
}

/**
 * A range of colors for the values of several models, each an array: from the 2nd to the 98th percentile where values
 * lie far outside. A model that reaches more than a hundred times as far from 0 as the best has diverged and leaves the
 * others their colors: they end at ten times the best, or at the farthest of the others. A model that only rounds, such
 * as one that is equivariant, is not measured by that.
 */
export function colorRange(rows) {
  const ends = rows.map(robustEnds).filter((pair) => pair !== null);
  if (!ends.length) return [0, 1];
  const [low, high] = [Math.min(...ends.map(([least]) => least)), Math.max(...ends.map(([, most]) => most))];
  const reaches = ends.map((pair) => Math.max(...pair.map(Math.abs))).filter((reach) => reach > 0);
  const least = ROUNDING * Math.max(...reaches);
  const best = Math.min(...reaches.filter((reach) => reach > least));
  const most = Math.max(TIMES * best, ...reaches.filter((reach) => reach <= DIVERGED * best));
  const range = [clamp(low, -most, most), clamp(high, -most, most)];
  return range[1] > range[0] ? range : [low, low + 1];
}

/** A range at least as wide as a share of another that holds it: noise must not look like a pattern. */
export function atLeast(/** @type {number[]} */ [low, high], whole, share) {
  const least = share * (whole[1] - whole[0]);
  if (!(least > high - low)) return [low, high];
  const start = clamp((low + high - least) / 2, whole[0], whole[1] - least);
  return [start, start + least];
}

/** A range from zero that ends at the highest value where that fills little of it: curves lie apart. */
export function upTo(values, /** @type {number[]} */ [low, high]) {
  const most = rangeOf(values)[1];
  return low === 0 && most < high / 2 && anyFinite(values) ? [low, most] : [low, high];
}

/** Whether all distances are so small that they come from rounding: they must not look like a pattern. */
export function onlyRounding(values, rounding) {
  return rounding > 0 && !values.some((value) => value > rounding);
}

/** Whether there is any number among the values. */
export function anyFinite(values) {
  for (let i = 0; i < values.length; i += 1) if (Number.isFinite(values[i])) return true;
  return false;
}

/** The place of the nearest of ascending or descending places. */
export function nearestPlace(places, value) {
  let best = 0;
  for (let i = 1; i < places.length; i += 1) {
    if (Math.abs(places[i] - value) < Math.abs(places[best] - value)) best = i;
  }
  return best;
}

/** A range with room for the values of marks. */
export function holding(range, marks) {
  if (!marks.length) return range;
  const values = marks.map(({ value }) => value);
  const [low, high] = range;
  return [Math.min(low, ...values), Math.max(high, ...values)];
}

/** The place that a key leads to from `at` among `n`, or null where the key means nothing. */
export function stepAlong(at, n, key, { shift = false, around = false } = {}) {
  const leap = Math.max(Math.round(n / 8), 1);
  const one = shift ? leap : 1;
  const forward = { ArrowRight: one, ArrowUp: one, PageUp: leap };
  const back = { ArrowLeft: one, ArrowDown: one, PageDown: leap };
  if (key === "Home") return 0;
  if (key === "End") return n - 1;
  if (!(key in forward) && !(key in back)) return null;
  const next = at + (forward[key] ?? -back[key]);
  return around ? (next + n) % n : Math.min(Math.max(next, 0), n - 1);
}

/** The range `{low, high}` of the bars from `first` to `last`; open where it reaches the end. */
export function rangeOfBins(/** @type {number[]} */ [first, last], edges, count) {
  const endless = count > edges.length - 1;
  const low = first === 0 ? -Infinity : first > edges.length - 2 ? Infinity : edges[first];
  return { low, high: last === count - 1 || (endless && last > edges.length - 2) ? Infinity : edges[last + 1] };
}

/** The bars that a range covers, or null for all of them. */
export function binsOfRange({ low, high }, edges, count) {
  const width = edges[1] - edges[0];
  const inner = edges.length - 2;
  const at = (value, by) => Math.min(Math.max(Math.floor((value - edges[0]) / width + by), 0), inner);
  const first = low === Infinity ? count - 1 : low === -Infinity ? 0 : at(low, 1e-6);
  const last = high === Infinity ? count - 1 : at(high, -1e-6);
  return first <= 0 && last >= count - 1 ? null : [first, Math.max(first, last)];
}
