/** The bounds of a model in plain numbers, from the forms in which they are answered. */

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
