import assert from "node:assert/strict";
import { test } from "node:test";
import { envelope, lineOf } from "../../src/orbical/interface/web/views/signal.js";

test("a short signal is drawn value by value, a long one between its ends", () => {
  assert.deepEqual(envelope(Float32Array.from([3, 1, 2]), 10), [
    [3, 3],
    [1, 1],
    [2, 2],
  ]);
  const wave = Float32Array.from({ length: 100 }, (_, i) => (i % 2 ? 1 : -1));
  assert.deepEqual(
    envelope(wave, 10),
    Array.from({ length: 10 }, () => [-1, 1]),
  );
  assert.equal(lineOf(envelope(wave, 10), Number, Number).length, 20);
  assert.deepEqual(lineOf([[2, 2]], Number, Number), [[0, 2]]);
});
