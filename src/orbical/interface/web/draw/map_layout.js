/** The part of the plane that a scatter plot shows: one scale for both directions. */
import { clamp } from "./scales.js";

const MOST = 400;

/** Show all of `bounds` `[left, low, right, high]` in a box of pixels, with a margin. */
export function wholeView([left, low, right, high], width, height, margin = 14) {
  const [w, h] = [Math.max(right - left, 1e-6), Math.max(high - low, 1e-6)];
  const unit = Math.max(Math.min((width - 2 * margin) / w, (height - 2 * margin) / h), 1e-6);
  return { unit, zoom: 1, x: (left + right) / 2, y: (low + high) / 2, width, height };
}

/** From a place of the data to pixels; upwards is upwards. */
export function toPixels(view, x, y) {
  const k = view.unit * view.zoom;
  return [view.width / 2 + (x - view.x) * k, view.height / 2 - (y - view.y) * k];
}

/** From pixels to a place of the data. */
export function toData(view, px, py) {
  const k = view.unit * view.zoom;
  return [view.x + (px - view.width / 2) / k, view.y - (py - view.height / 2) / k];
}

/** Zoom by a factor and keep the place under the pointer where it is. */
export function zoomed(view, factor, px, py) {
  const zoom = clamp(view.zoom * factor, 1, MOST);
  const [x, y] = toData(view, px, py);
  const [nx, ny] = toData({ ...view, zoom }, px, py);
  return { ...view, zoom, x: view.x + x - nx, y: view.y + y - ny };
}

/** Move the view by pixels. */
export function panned(view, dx, dy) {
  const k = view.unit * view.zoom;
  return { ...view, x: view.x - dx / k, y: view.y + dy / k };
}

/** The view as numbers per axis: pixels = data * scale + offset. */
export function affine(view) {
  const k = view.unit * view.zoom;
  return { scale: [k, -k], offset: [view.width / 2 - view.x * k, view.height / 2 + view.y * k] };
}

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

const OTHERS = 50_000;

/**
 * Samples whose squares of `size` pixels do not overlap: of each cell of a grid the point nearest to its middle,
 * then others where there is room. The grid is fixed to the map and halves when the zoom doubles, so that moving
 * the view keeps most of the choice and zooming refines it. `mask` (1 = in the subset) or null.
 */
export function spacedOut(xy, mask, view, size) {
  const wide = size / (view.unit * 2 ** Math.floor(Math.log2(view.zoom))); // of a cell, on the map
  const reach = (pixels) => pixels / 2 / (view.unit * view.zoom);
  const [left, right] = [view.x - reach(view.width), view.x + reach(view.width)];
  const [low, high] = [view.y - reach(view.height), view.y + reach(view.height)];
  // A cell more on each side: the neighbors of a cell need no checks at the edge.
  const [first, bottom] = [Math.floor(left / wide) - 1, Math.floor(low / wide) - 1];
  const columns = Math.floor(right / wide) - first + 2;
  const rows = Math.floor(high / wide) - bottom + 2;
  const best = new Int32Array(columns * rows).fill(-1);
  const off = new Float64Array(columns * rows).fill(Infinity);
  const others = []; // of very many points some, which fill the gaps as well
  const step = Math.max(1, Math.floor(xy.length / 2 / OTHERS));
  for (let i = 0; i < xy.length / 2; i += 1) {
    const x = xy[2 * i];
    const y = xy[2 * i + 1];
    if (!(x >= left && x <= right && y >= low && y <= high) || (mask && !mask[i])) continue;
    if (i % step === 0) others.push(i);
    const across = x / wide;
    const up = y / wide;
    const cell = (Math.floor(up) - bottom) * columns + Math.floor(across) - first;
    const far = (across - Math.floor(across) - 0.5) ** 2 + (up - Math.floor(up) - 0.5) ** 2;
    if (far >= off[cell]) continue;
    best[cell] = i;
    off[cell] = far;
  }
  const taken = new Int32Array(columns * rows).fill(-1); // squares of this width: one to a cell at most
  const chosen = [];
  const take = (i) => {
    const [x, y] = [xy[2 * i], xy[2 * i + 1]];
    const cell = (Math.floor(y / wide) - bottom) * columns + Math.floor(x / wide) - first;
    for (let down = -columns; down <= columns; down += columns) {
      for (let across = -1; across <= 1; across += 1) {
        const j = taken[cell + down + across];
        if (j >= 0 && Math.abs(x - xy[2 * j]) < wide && Math.abs(y - xy[2 * j + 1]) < wide) return;
      }
    }
    taken[cell] = i;
    chosen.push(i);
  };
  for (const cell of [...best.keys()].filter((each) => best[each] >= 0).sort((a, b) => off[a] - off[b]))
    take(best[cell]);
  others.forEach(take);
  return chosen;
}

/** Where each of the samples is drawn, `{ sample, x, y }` in pixels, those inside the plot. */
export function placesOf(samples, xy, view) {
  const { scale, offset } = affine(view);
  return samples
    .map((sample) => ({
      sample,
      x: xy[2 * sample] * scale[0] + offset[0],
      y: xy[2 * sample + 1] * scale[1] + offset[1],
    }))
    .filter(({ x, y }) => x >= 0 && y >= 0 && x <= view.width && y <= view.height);
}

const MOST_LABELS = 20;
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
  if (members.size > MOST_LABELS) return [];
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
