/** Between bars of a histogram and the range of a clause. A bar behind the last edge is of endless numbers. */

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
