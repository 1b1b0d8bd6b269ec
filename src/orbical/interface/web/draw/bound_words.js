/** The bounds of a symmetry in sentences. */

import { fixed } from "./format.js";

const known = (...values) => values.every((value) => typeof value === "number" && Number.isFinite(value));
const percent = (share) => `${fixed(100 * share, share > 0 && share < 0.095 ? 1 : 0)} %`;

/** The ceiling of these samples, and what it says of others. */
export function ceilingWords({ ceiling, certified }, noun) {
  const here = `No invariant model exceeds an accuracy of ${fixed(ceiling, 3)} on these ${noun}.`;
  if (!certified) return here;
  const [low, high] = certified;
  if (high >= 1) return `${here} They do not certify a ceiling for new ${noun}: their orbits rarely recur.`;
  return `${here} For new ${noun} the ceiling lies between ${fixed(low, 3)} and ${fixed(high, 3)}, with 95 % certainty.`;
}

/** The price of symmetry: how much of it a model breaks, and must break to be that accurate. */
export function priceWords({ broken, broken_at_least: least, ceiling, averaged }, noun) {
  if (!known(broken)) return "";
  const does = `it answers ${percent(broken)} of the ${noun} unlike most of their orbit`;
  const itself = averaged ? "not averaged over the orbit, " : "";
  if (!known(least) || least <= 0) return `: ${itself}${does}.`;
  const needs = `any model so accurate breaks the symmetry on at least ${percent(least)}`;
  return `: ${itself}its accuracy of ${fixed(ceiling + least, 3)} is above the ceiling; ${needs}, and ${does}.`;
}

/** How small the calibration error could be with these confidences. */
export function leastWords({ least_low: low, least_high: high }) {
  if (!known(low, high)) return "";
  const ends = [fixed(low, 3), fixed(high, 3)];
  const is = ends[0] === ends[1] ? `is ${ends[0]}` : `lies between ${ends[0]} and ${ends[1]}`;
  return `The smallest ECE of an invariant model with these confidences ${is}.`;
}
