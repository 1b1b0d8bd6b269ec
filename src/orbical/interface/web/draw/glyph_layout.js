/** Which samples have room for a picture at their place on a map. */

import { affine } from "./viewport.js";

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
