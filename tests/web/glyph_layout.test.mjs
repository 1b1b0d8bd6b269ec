import assert from "node:assert/strict";
import { test } from "node:test";

import { placesOf, spacedOut, wholeView, zoomed } from "../../src/orbical/interface/web/draw/map_layout.js";

/** Points everywhere in [-1, 1]^2, the same each time. */
function scattered(count) {
  let seed = 7;
  const next = () => ((seed = (seed * 16807) % 2147483647) / 2147483647) * 2 - 1;
  return Float32Array.from({ length: 2 * count }, next);
}

const view = wholeView([-1, -1, 1, 1], 600, 400);

function overlaps(samples, xy, from, size) {
  const places = placesOf(samples, xy, from);
  return places.some((one, i) =>
    places.slice(i + 1).some((other) => Math.max(Math.abs(one.x - other.x), Math.abs(one.y - other.y)) < size - 0.01),
  );
}

test("pictures at their places do not overlap, and fill the map", () => {
  const xy = scattered(5000);
  const chosen = spacedOut(xy, null, view, 60);
  assert.equal(overlaps(chosen, xy, view, 60), false);
  assert.ok(chosen.length > 20, String(chosen.length)); // about 370 by 370 pixels of points
});

test("zooming in shows more samples of the part in view, and panning keeps most", () => {
  const xy = scattered(5000);
  const before = new Set(placesOf(spacedOut(xy, null, view, 60), xy, zoomed(view, 4, 300, 200)).map((p) => p.sample));
  const close = zoomed(view, 4, 300, 200);
  const after = spacedOut(xy, null, close, 60);
  assert.equal(overlaps(after, xy, close, 60), false);
  assert.ok(after.length > 2 * before.size);
  const aside = { ...close, x: close.x + 0.01 };
  const kept = spacedOut(xy, null, aside, 60).filter((sample) => after.includes(sample));
  assert.ok(kept.length > 0.7 * after.length);
});

test("only the subset has pictures, and points without a place have none", () => {
  const xy = Float32Array.from([0, 0, 0.5, 0.5, NaN, NaN, -0.5, -0.5]);
  const mask = Uint8Array.from([1, 0, 1, 1]);
  assert.deepEqual(spacedOut(xy, mask, view, 40).sort(), [0, 3]);
  assert.deepEqual(spacedOut(new Float32Array(0), null, view, 40), []);
});

test("very many points have pictures as close as fewer have", () => {
  const xy = scattered(300_000);
  const chosen = spacedOut(xy, null, view, 60);
  assert.equal(overlaps(chosen, xy, view, 60), false);
  assert.ok(chosen.length > 20, String(chosen.length));
});
