/** Names of classes among their points, so that hue is not the only sign of a class. */

const MOST = 20;
const APART = 0.1; // of a map that reaches from -1 to 1: about the size of a name

/**
 * For each class its name, color and place: the member nearest to the middle of its class that is not too
 * close to another name; none where there are too many classes.
 */
export function classLabels(xy, values, names, colorOf) {
  const members = new Map();
  for (let i = 0; i < values.length; i += 1) {
    if (!Number.isFinite(values[i]) || !Number.isFinite(xy[2 * i] + xy[2 * i + 1])) continue;
    if (!members.has(values[i])) members.set(values[i], []);
    members.get(values[i]).push(i);
  }
  if (members.size > MOST) return [];
  const placed = [];
  return [...members]
    .sort(([one], [other]) => one - other)
    .map(([value, points]) => {
      const middle = [0, 1].map((axis) => median(points.map((i) => xy[2 * i + axis])));
      const off = (i) => Math.hypot(xy[2 * i] - middle[0], xy[2 * i + 1] - middle[1]);
      const free = points.filter((i) =>
        placed.every((j) => Math.hypot(xy[2 * i] - xy[2 * j], xy[2 * i + 1] - xy[2 * j + 1]) > APART),
      );
      const nearest = (free.length ? free : points).reduce((best, i) => (off(i) < off(best) ? i : best));
      placed.push(nearest);
      const text = String(names?.[value] ?? value);
      return { text, x: xy[2 * nearest], y: xy[2 * nearest + 1], color: colorOf(value) };
    });
}

function median(values) {
  const sorted = Float32Array.from(values).sort();
  return sorted[Math.floor(sorted.length / 2)];
}
