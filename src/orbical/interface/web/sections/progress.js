// How much of some long work is done, and how long it will take.

/** Seconds in words: "5 s", "2 min", "1.5 h". */
export function duration(seconds) {
  if (seconds < 1) return "1 s";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
