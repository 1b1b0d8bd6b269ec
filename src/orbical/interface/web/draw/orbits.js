/** Orbits in numbers: which cells show an element, and which element a place means. */

/** A group as plots use it: plain arrays, each element's cells, its name. */
export function orbitOf(group) {
  const given = group.index ?? group.names.map((_, k) => k);
  const index = Int32Array.from(given.data ?? given.flat?.(Infinity) ?? given);
  const shape = given.shape ? [...given.shape] : shapeOf(given, index.length);
  const size = group.names?.length ?? Math.max(...index) + 1;
  /** @type {number[][]} */
  const cells = Array.from({ length: size }, () => []);
  index.forEach((element, cell) => element >= 0 && cells[element]?.push(cell));
  const identity = group.identity ?? 0;
  return { ...group, axes: group.axes ?? {}, coords: group.coords ?? {}, index, shape, size, cells, identity };
}

function shapeOf(nested, length) {
  const shape = [];
  for (let level = nested; Array.isArray(level); level = level[0]) shape.push(level.length);
  return shape.length ? shape : [length];
}

/** Where keys lead: to the right, up, and out of the page. */
export const WAYS = {
  ArrowLeft: [-1, 0, 0],
  ArrowRight: [1, 0, 0],
  ArrowUp: [0, 1, 0],
  ArrowDown: [0, -1, 0],
  PageUp: [0, 0, 1],
  PageDown: [0, 0, -1],
};

/** What an element is called. */
export function nameOf(orbit, element) {
  return orbit.names?.[element] ?? `element ${element}`;
}

/** An angle in degrees from 0 up to 360. */
export function turned(angle) {
  return ((angle % 360) + 360) % 360;
}

/** The angle of a place around a center: zero upwards, counter-clockwise, in degrees. */
export function angleAt(x, y, cx, cy) {
  return turned((Math.atan2(cx - x, cy - y) * 180) / Math.PI);
}

/** The place at an angle and a radius around a center, the inverse of `angleAt`. */
export function placeAt(angle, radius, cx, cy) {
  const turn = (angle * Math.PI) / 180;
  return [cx - radius * Math.sin(turn), cy - radius * Math.cos(turn)];
}

/** The cell whose angle is nearest, around the circle. */
export function nearestAngle(angles, angle) {
  let [best, least] = [0, Infinity];
  for (let i = 0; i < angles.length; i += 1) {
    const off = Math.abs(turned(angles[i] - angle + 180) - 180);
    if (off < least) [best, least] = [i, off];
  }
  return best;
}

/** A value between two neighboring angles of a ring. */
export function betweenAngles(angles, ring, angle) {
  const at = nearestAngle(angles, angle);
  const off = turned(angle - angles[at] + 180) - 180;
  if (Math.abs(off) < 1e-9 || angles.length < 2) return ring[at];
  const next = (at + (off > 0 ? 1 : angles.length - 1)) % angles.length;
  const gap = turned(angles[next] - angles[at] + 180) - 180;
  return ring[at] + (gap ? off / gap : 0) * (ring[next] - ring[at]);
}

/** The element ahead of one in a direction, among points of any dimension; itself for none. */
export function elementAhead(points, element, direction) {
  let [best, least] = [element, Infinity];
  points.forEach((point, k) => {
    if (k === element) return;
    const step = point.map((value, d) => value - points[element][d]);
    const along = step.reduce((sum, value, d) => sum + value * direction[d], 0);
    const aside = Math.sqrt(Math.max(step.reduce((sum, value) => sum + value * value, 0) - along * along, 0));
    const cost = along + 2 * aside;
    if (along > 1e-9 && aside <= 2 * along && cost < least) [best, least] = [k, cost];
  });
  return best;
}
