import assert from "node:assert/strict";
import { test } from "node:test";

import { rowsOf } from "../../src/orbical/interface/web/views/values.js";

test("a few numbers stand in rows, so that models are compared number by number", () => {
  const rows = rowsOf([Float32Array.of(1, -0.5), Float32Array.of(2, 0.25)]);
  assert.deepEqual(rows, [
    ["", "1", "2"],
    ["", "−0.5", "0.25"],
  ]);
});

test("numbers of atoms are named by them", () => {
  assert.deepEqual(rowsOf([Float32Array.of(1, 2)], "atom_vs_consensus", "d"), [
    ["d, atom 0", "1"],
    ["d, atom 1", "2"],
  ]);
});

test("many numbers are written by their range", () => {
  assert.deepEqual(rowsOf([Float32Array.from({ length: 20 }, (_, i) => i - 3)]), [["", "20 values, −3 to 16"]]);
});

test("numbers that are none are left out of the range", () => {
  const padded = Float32Array.from({ length: 15 }, (_, i) => (i < 13 ? i : NaN));
  assert.deepEqual(rowsOf([padded]), [["", "13 values, 0 to 12"]]);
  assert.deepEqual(rowsOf([new Float32Array(15).fill(NaN)]), [["", "–"]]);
});

test("what only fills up a shorter molecule is not listed", () => {
  assert.deepEqual(rowsOf([Float32Array.of(1, NaN, 2, NaN, NaN)]), [
    ["", "1"],
    ["", "–"],
    ["", "2"],
  ]);
  assert.deepEqual(rowsOf([Float32Array.of(NaN, NaN), Float32Array.of(NaN, 3)]), [
    ["", "–", "–"],
    ["", "–", "3"],
  ]);
  assert.deepEqual(rowsOf([Float32Array.of(NaN, NaN)]), [["", "–"]]);
});
