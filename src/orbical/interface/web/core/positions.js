// Between two samplings of one orbit: which element of one is nearest to a place of the other.

const AXES = ["angle", "dx", "dy", "scale"];

/** The continuous coordinates of an element, in the order in which positions are written. */
export function coordinates(group, element) {
  return AXES.filter((axis) => group.coords[axis]).map((axis) => group.coords[axis][element]);
}

/** The element nearest to a position; angles go around. */
export function nearestElement(group, position) {
  const around = Boolean(group.coords.angle);
  let [best, least] = [0, Infinity];
  for (let k = 0; k < group.names.length; k += 1) {
    const off = coordinates(group, k).reduce((sum, value, axis) => {
      const apart = Math.abs(value - position[axis]);
      return sum + (around ? Math.min(apart, 360 - apart) : apart) ** 2;
    }, 0);
    if (off < least) [best, least] = [k, off];
  }
  return best;
}
