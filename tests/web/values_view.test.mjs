import assert from "node:assert/strict";
import { test } from "node:test";

import { summary } from "../../src/orbical/interface/web/views/values.js";

test("a few numbers are all written, many by their range", () => {
  assert.equal(summary(Float32Array.of(1, -0.5)), "1  −0.5");
  assert.equal(summary(Float32Array.from({ length: 20 }, (_, i) => i - 3)), "20 values, −3 to 16");
});

test("numbers that are none are left out of the range", () => {
  const padded = Float32Array.from({ length: 15 }, (_, i) => (i < 13 ? i : NaN));
  assert.equal(summary(padded), "13 values, 0 to 12");
  assert.equal(summary(new Float32Array(15).fill(NaN)), "–");
});
