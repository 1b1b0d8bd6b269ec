/** Where a key leads along a row of places: around a circle, or up to the ends of a line. */

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
