/** Which point is meant: a grid of buckets over the points, so that a click never misses. */

/** Sort points `xy` (flat x, y) into a grid; points that are not numbers are left out. */
export function createPointIndex(xy, side = 128) {
  const total = xy.length / 2;
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < total; i += 1) {
    const [x, y] = [xy[2 * i], xy[2 * i + 1]];
    if (!Number.isFinite(x + y)) continue;
    if (x < left) left = x;
    if (x > right) right = x;
    if (y < top) top = y;
    if (y > bottom) bottom = y;
  }
  const size = Math.max(right - left, bottom - top, 1e-9) / side;
  const cell = (value, start) => Math.min(Math.max(Math.floor((value - start) / size), 0), side - 1);
  const start = new Int32Array(side * side + 1);
  const of = new Int32Array(total).fill(-1);
  for (let i = 0; i < total; i += 1) {
    if (!Number.isFinite(xy[2 * i] + xy[2 * i + 1])) continue;
    of[i] = cell(xy[2 * i + 1], top) * side + cell(xy[2 * i], left);
    start[of[i] + 1] += 1;
  }
  for (let b = 0; b < side * side; b += 1) start[b + 1] += start[b];
  const next = start.slice(0, -1);
  const order = new Int32Array(start[side * side]);
  for (let i = 0; i < total; i += 1) if (of[i] >= 0) order[next[of[i]]++] = i;
  const grid = { xy, side, size, left, top, start, order };
  return {
    bounds: order.length ? [left, top, right, bottom] : [-1, -1, 1, 1],
    nearest: (x, y, limit = Infinity) => search(grid, x, y, limit, distance(xy, x, y)),
    neighbor: (i, dx, dy) => search(grid, xy[2 * i], xy[2 * i + 1], Infinity, distanceAhead(xy, i, dx, dy)),
  };
}

/** The distance of point i from a place. */
function distance(xy, x, y) {
  return (i) => Math.hypot(xy[2 * i] - x, xy[2 * i + 1] - y);
}

/** How far point j lies ahead of point i; what lies aside costs more, what lies behind is out. */
export function distanceAhead(xy, i, dx, dy) {
  return (j) => {
    const [x, y] = [xy[2 * j] - xy[2 * i], xy[2 * j + 1] - xy[2 * i + 1]];
    const along = x * dx + y * dy;
    const aside = Math.abs(x * dy - y * dx);
    return j === i || along <= 1e-9 || aside > 1.5 * along ? Infinity : along + 2 * aside;
  };
}

/** Look through buckets in growing squares until none farther out can be better; -1 for none. */
function search(grid, x, y, limit, cost) {
  const { side, size, left, top, start, order } = grid;
  const column = Math.min(Math.max(Math.floor((x - left) / size), 0), side - 1);
  const row = Math.min(Math.max(Math.floor((y - top) / size), 0), side - 1);
  // A place outside of the grid is farther from its buckets than the rings say.
  const outside = Math.hypot(
    Math.max(left - x, x - left - side * size, 0),
    Math.max(top - y, y - top - side * size, 0),
  );
  let [best, least] = [-1, limit];
  const look = (r, c) => {
    if (r < 0 || c < 0 || r >= side || c >= side) return;
    const bucket = r * side + c;
    for (let k = start[bucket]; k < start[bucket + 1]; k += 1) {
      const found = cost(order[k]);
      if (found < least || (found === least && best < 0)) [best, least] = [order[k], found];
    }
  };
  for (let ring = 0; ring < side; ring += 1) {
    if (best >= 0 && Math.max((ring - 1) * size, outside) > least) break;
    if (ring === 0) look(row, column);
    for (let k = -ring; ring > 0 && k <= ring; k += 1) {
      look(row - ring, column + k);
      look(row + ring, column + k);
      if (Math.abs(k) < ring) {
        look(row + k, column - ring);
        look(row + k, column + ring);
      }
    }
  }
  return Number.isFinite(least) || best < 0 ? best : -1;
}
