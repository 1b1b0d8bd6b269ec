import assert from "node:assert/strict";
import { test } from "node:test";

import {
  affine,
  createPointIndex,
  distanceAhead,
  panned,
  toData,
  toPixels,
  wholeView,
  zoomed,
} from "../../src/orbical/interface/web/draw/map_layout.js";
import { simplifyTo, insidePolygon, simplify } from "../../src/orbical/interface/web/draw/polygon.js";

/** A small generator of numbers, the same in every run. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function cloud(count, seed = 1) {
  const random = numbers(seed);
  return Float32Array.from({ length: 2 * count }, () => 2 * random() ** 2 - 1);
}

function leastDistance(xy, x, y) {
  let least = Infinity;
  for (let i = 0; i < xy.length / 2; i += 1) least = Math.min(least, Math.hypot(xy[2 * i] - x, xy[2 * i + 1] - y));
  return least;
}

test("the nearest point is the nearest of all, inside and far outside of the points", () => {
  const xy = cloud(3000);
  const buckets = createPointIndex(xy);
  const random = numbers(7);
  for (let k = 0; k < 400; k += 1) {
    const [x, y] = [6 * random() - 3, 6 * random() - 3];
    const found = buckets.nearest(x, y);
    assert.equal(Math.hypot(xy[2 * found] - x, xy[2 * found + 1] - y), leastDistance(xy, x, y));
  }
});

test("a click never misses, even with one point, or all on one line", () => {
  assert.equal(createPointIndex(Float32Array.of(0.3, 0.4)).nearest(-1, -1), 0);
  const line = Float32Array.from({ length: 20 }, (_, i) => (i % 2 ? 0 : i / 10));
  assert.equal(createPointIndex(line).nearest(9, 5), 9);
});

test("points that are missing are never found", () => {
  const buckets = createPointIndex(Float32Array.of(NaN, NaN, 0.5, 0.5));
  assert.equal(buckets.nearest(0, 0), 1);
  assert.equal(createPointIndex(Float32Array.of(NaN, 0)).nearest(0, 0), -1);
});

test("a limit keeps far points out", () => {
  assert.equal(createPointIndex(Float32Array.of(0, 0, 1, 1)).nearest(0.5, 0.4, 0.1), -1);
});

test("the neighbor lies in the direction asked for and costs least", () => {
  const xy = cloud(800, 3);
  const buckets = createPointIndex(xy);
  for (const [dx, dy] of [
    [1, 0],
    [-1, 0],
    [0, 1],
    [0, -1],
  ]) {
    for (let i = 0; i < 800; i += 37) {
      const cost = distanceAhead(xy, i, dx, dy);
      const costs = Array.from({ length: 800 }, (_, j) => cost(j));
      const least = Math.min(...costs);
      const found = buckets.neighbor(i, dx, dy);
      if (least === Infinity) assert.equal(found, -1);
      else assert.equal(costs[found], least);
    }
  }
});

test("what lies inside of an outline, also of one that folds in", () => {
  const arrow = [
    [0, 0],
    [4, 0],
    [4, 4],
    [2, 1],
    [0, 4],
  ];
  assert.ok(insidePolygon(arrow, 0.5, 1));
  assert.ok(!insidePolygon(arrow, 2, 3));
  assert.ok(!insidePolygon(arrow, 5, 1));
});

test("an outline loses corners but not its shape", () => {
  const circle = Array.from({ length: 400 }, (_, i) => [100 * Math.cos(i / 63.7), 100 * Math.sin(i / 63.7)]);
  const few = simplifyTo(circle, 40, 0.5);
  assert.ok(few.length <= 40 && few.length > 10);
  assert.ok(insidePolygon(few, 0, 95) && !insidePolygon(few, 0, 101));
  assert.deepEqual(
    simplify(
      [
        [0, 0],
        [1, 0.001],
        [2, 0],
      ],
      0.1,
    ),
    [
      [0, 0],
      [2, 0],
    ],
  );
});

test("pixels and data undo each other, and up is up", () => {
  const view = wholeView([-1, -0.5, 1, 0.5], 400, 300);
  const [px, py] = toPixels(view, 0.3, 0.2);
  const [x, y] = toData(view, px, py);
  assert.ok(Math.abs(x - 0.3) < 1e-12 && Math.abs(y - 0.2) < 1e-12);
  assert.ok(py < 150);
  const { scale, offset } = affine(view);
  assert.ok(Math.abs(0.2 * scale[1] + offset[1] - py) < 1e-9);
});

test("zooming keeps the place under the pointer, and ends at the whole", () => {
  const view = wholeView([-1, -1, 1, 1], 400, 300);
  const near = zoomed(view, 8, 120, 40);
  const [before, after] = [toData(view, 120, 40), toData(near, 120, 40)];
  before.forEach((value, i) => assert.ok(Math.abs(value - after[i]) < 1e-12));
  assert.equal(zoomed(view, 0.1, 120, 40).zoom, 1);
  assert.deepEqual(toPixels(panned(near, 30, -20), ...after).map(Math.round), [150, 20]);
});

test("a million points are sorted and searched quickly", () => {
  const xy = cloud(1_000_000, 5);
  const start = performance.now();
  const buckets = createPointIndex(xy);
  const built = performance.now();
  for (let k = 0; k < 100; k += 1) buckets.nearest(Math.sin(k), Math.cos(k));
  const asked = performance.now();
  assert.ok(built - start < 3000, `sorted in ${built - start} ms`);
  assert.ok((asked - built) / 100 < 25, `searched in ${(asked - built) / 100} ms`);
});
