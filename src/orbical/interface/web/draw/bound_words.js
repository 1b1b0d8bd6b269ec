/** The bounds of a model in plain numbers, from the forms in which they are answered. */
import { fixed } from "./format.js";

/** `{ name, color, accuracy, ece, low, high, ceiling }` of a model; a bound that does not apply is NaN. */
export function modelBounds(model, shared = {}) {
  const named = model.bounds ?? model;
  const value = (name, ...others) => {
    const found = [named[name], ...others].find((each) => each !== undefined && each !== null);
    return number(found);
  };
  return {
    name: model.name,
    color: model.color,
    accuracy: value("accuracy", model.about?.accuracy),
    ece: value("ece"),
    low: value("forced_ece", model.low, shared.low),
    high: value("sharp_upper", model.high, shared.high),
    ceiling: value("accuracy_ceiling", model.ceiling, shared.ceiling),
  };
}

function number(given) {
  if (typeof given === "number") return given;
  if (given && given.applies !== false && typeof given.value === "number") return given.value;
  return NaN;
}

const LINE = 14;

/** Heights of names near those wanted, a line apart from each other, from bottom to top within limits. */
export function spreadLabels(wanted, top, bottom) {
  const order = [...wanted.keys()].sort((a, b) => wanted[b] - wanted[a]);
  const found = wanted.map((height) => Math.min(Math.max(height, top), bottom));
  order.slice(1).forEach((k, i) => (found[k] = Math.min(found[k], found[order[i]] - LINE)));
  return found;
}

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
  const share = `${percent(broken)} of the ${noun}`;
  const itself = averaged ? "not averaged over the orbit, " : "";
  if (!known(least) || least <= 0) return `: ${itself}it breaks the symmetry on ${share}.`;
  const needs = `any model so accurate breaks the symmetry on at least ${percent(least)}, this one on ${share}`;
  return `: ${itself}its accuracy of ${fixed(ceiling + least, 3)} is above the ceiling; ${needs}.`;
}

/** How small the calibration error could be with these confidences. */
export function leastWords({ least_low: low, least_high: high }) {
  if (!known(low, high)) return "";
  const ends = [fixed(low, 3), fixed(high, 3)];
  const is = ends[0] === ends[1] ? `is ${ends[0]}` : `lies between ${ends[0]} and ${ends[1]}`;
  return `The smallest ECE of an invariant model with these confidences ${is}.`;
}
