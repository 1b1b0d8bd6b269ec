import assert from "node:assert/strict";
import { test } from "node:test";

import { confusion } from "../../src/orbical/interface/web/sections/individual.js";

const predicted = { data: Int32Array.of(6, 9, 9, 0, 6, 6, 6, 2), shape: [2, 4] };
const answer = { models: ["plain", "augmented"], label: 6, consensus: [9, 6], arrays: { predicted } };
const nameOf = (c) => `class ${c}`;

test("the wrong answer given most often is said, with the model that gives it", () => {
  assert.equal(confusion(answer, false, nameOf), "plain predicts class 9 at 2 of 4 positions");
});

test("against the consensus each model has its own right answer", () => {
  assert.equal(confusion(answer, true, nameOf), "plain predicts class 6 at 1 of 4 positions");
});

test("right everywhere, and nothing where classes or truth are unknown", () => {
  const right = { ...answer, arrays: { predicted: { data: Int32Array.of(6, 6), shape: [2, 1] } } };
  assert.equal(confusion(right, false, nameOf), "correct at all 1 positions");
  assert.equal(confusion({ ...answer, arrays: {} }, false, nameOf), "");
  assert.equal(confusion({ ...answer, label: null }, false, nameOf), "");
  const unfinished = { data: new Int32Array(8).fill(-1), shape: [2, 4] };
  assert.equal(confusion({ ...answer, arrays: { predicted: unfinished } }, false, nameOf), "");
});
