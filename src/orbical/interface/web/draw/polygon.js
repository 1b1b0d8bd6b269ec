/** Outlines drawn by hand: what lies inside, and as few corners as say the same. */

/** Whether a place lies inside a polygon `[[x, y], ...]` by the even-odd rule, as in Python. */
export function insidePolygon(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
    const [ax, ay] = polygon[i];
    const [bx, by] = polygon[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

/** Leave out corners nearer than `tolerance` to the line through their neighbors. */
export function simplify(points, tolerance) {
  if (points.length < 3) return points.slice();
  const keep = new Uint8Array(points.length);
  keep[0] = keep[points.length - 1] = 1;
  const open = [[0, points.length - 1]];
  for (let part = open.pop(); part; part = open.pop()) {
    const [from, to] = part;
    let [far, most] = [-1, tolerance];
    for (let i = from + 1; i < to; i += 1) {
      const off = fromSegment(points[i], points[from], points[to]);
      if (off > most) [far, most] = [i, off];
    }
    if (far >= 0) {
      keep[far] = 1;
      open.push([from, far], [far, to]);
    }
  }
  return points.filter((_, i) => keep[i]);
}

/** Simplify until at most `most` corners are left, so that the polygon fits in an address. */
export function simplifyTo(points, most, tolerance) {
  let [found, allowed] = [simplify(points, tolerance), tolerance];
  while (found.length > most) {
    allowed *= 1.5;
    found = simplify(points, allowed);
  }
  return found;
}

function fromSegment([x, y], [ax, ay], [bx, by]) {
  const [dx, dy] = [bx - ax, by - ay];
  const length = dx * dx + dy * dy;
  const share = length ? Math.min(Math.max(((x - ax) * dx + (y - ay) * dy) / length, 0), 1) : 0;
  return Math.hypot(x - ax - share * dx, y - ay - share * dy);
}
