import assert from "node:assert/strict";
import { test } from "node:test";

import { arrows, fieldOf, lengths, thinned } from "../../src/orbical/interface/web/views/flow.js";
import { frameOf, overlay } from "../../src/orbical/interface/web/views/pair.js";
import { arranged } from "../../src/orbical/interface/web/views/tile.js";

test("a model's field is cut out of all fields", () => {
  const all = { data: Float32Array.from({ length: 16 }, (_, i) => i), shape: [2, 2, 2, 2] };
  assert.deepEqual(Array.from(fieldOf(all, 1).data), [8, 9, 10, 11, 12, 13, 14, 15]);
  assert.deepEqual(fieldOf(all, 1).shape, [2, 2, 2]);
});

test("blocks are means of the cells that are there", () => {
  const field = { data: Float32Array.from([1, 2, 3, NaN, 10, 10, 10, 10]), shape: [2, 2, 2] };
  const { data, shape } = thinned(field, 2);
  assert.deepEqual(shape, [2, 1, 1]);
  assert.deepEqual(Array.from(data), [2, 10]);
});

test("an arrow lies on its cell and points down for positive dy", () => {
  const field = { data: Float32Array.from([0, 0, 0, 2]), shape: [2, 1, 2] };
  const [still, down] = arrows(field, Math.max(...lengths(field)), 1);
  assert.deepEqual(still, [0.5, 0.5, 0.5, 0.5]);
  assert.deepEqual(down, [1.5, 0, 1.5, 1]);
});

test("missing vectors have no arrow", () => {
  const field = { data: Float32Array.from([NaN, 1, NaN, 0]), shape: [2, 1, 2] };
  assert.equal(arrows(field, 1).length, 1);
});

test("panels are as large as the room allows", () => {
  assert.equal(arranged(2, 400, 200).columns, 2);
  assert.equal(arranged(2, 150, 500).columns, 1);
  assert.ok(arranged(3, 10, 10).side >= 44);
});

test("an arrow beyond the scale keeps its direction and is cut", () => {
  const field = { data: Float32Array.from([300, 400]), shape: [2, 1, 1] };
  const [[x0, y0, x1, y1]] = arrows(field, 1, 1);
  for (const [found, wanted] of [
    [x1 - x0, 0.6],
    [y1 - y0, 0.8],
  ])
    assert.ok(Math.abs(found - wanted) < 1e-6);
});

test("frames are shown one by one, or over each other as orange and blue that make white", () => {
  const pair = { data: Float32Array.from([1, 0, 1, 0, 1, 0]), shape: [2, 1, 1, 3] };
  assert.deepEqual(Array.from(frameOf(pair, 1).data), [0, 1, 0]);
  const out = new Uint8ClampedArray(12);
  overlay(pair, [0, 1], out);
  assert.deepEqual(Array.from(out), [255, 140, 0, 255, 0, 115, 255, 255, 255, 140, 0, 255]);
  const same = { data: Float32Array.from([1, 1]), shape: [2, 1, 1, 1] };
  overlay(same, [0, 1], out);
  assert.deepEqual(Array.from(out.slice(0, 4)), [255, 255, 255, 255]);
});
