import assert from "node:assert/strict";
import test from "node:test";

import { answersOf, meaning, partsOf, reach, sentenceOf } from "../../src/orbical/interface/web/views/intervals.js";

const field = (data, ...shape) => ({ data: Float32Array.from(data), shape });

const fields = {
  mean: field([1, 2, 3, 4], 2, 2),
  variance: field([4, 1], 2, 1),
  aleatoric: field([3, 0.75], 2, 1),
  epistemic: field([1, 0.25], 2, 1),
};

test("a shared variance belongs to every component of its model", () => {
  const [a, b] = answersOf(fields, ["a", "b"]);
  assert.deepEqual(a.mean, [1, 2]);
  assert.deepEqual(a.deviation, [2, 2]);
  assert.deepEqual(b.deviation, [1, 1]);
});

test("a variance for each component stays with it", () => {
  const [a] = answersOf({ mean: field([0, 0], 1, 2), variance: field([1, 9], 1, 2) }, ["a"]);
  assert.deepEqual(a.deviation, [1, 3]);
});

test("a shared variance of each point belongs to the components of that point", () => {
  const [a] = answersOf({ mean: field([0, 0, 0, 0], 1, 2, 2), variance: field([1, 4], 1, 2, 1) }, ["a"]);
  assert.deepEqual(a.deviation, [1, 1, 2, 2]);
});

test("the range holds two deviations around every mean, and the truth", () => {
  const [low, high] = reach(answersOf(fields, ["a", "b"]), [20, 0]);
  assert.ok(low < 1 - 4 && high > 20);
});

test("a model without a variance has no interval and no parts", () => {
  const given = { mean: field([5, 6], 2, 1), variance: field([NaN, 1], 2, 1) };
  const [bare, sure] = answersOf(given, ["bare", "sure"]);
  assert.deepEqual(partsOf(bare, 0), []);
  assert.deepEqual(partsOf(sure, 0), [{ part: "variance", value: 1 }]);
  assert.deepEqual(answersOf({}, ["a"]), []);
});

test("parts of the variance add up to it", () => {
  const [a] = answersOf(fields, ["a", "b"]);
  const parts = partsOf(a, 1);
  assert.deepEqual(
    parts.map(({ part }) => part),
    ["aleatoric", "epistemic"],
  );
  assert.equal(parts[0].value + parts[1].value, 4);
});

test("the marks are explained as far as they are there", () => {
  const answers = answersOf(fields, ["a", "b"]);
  assert.match(meaning(answers, false, true), /1 and 2 σ; black: truth; dark: aleatoric/);
  assert.equal(meaning(answersOf({ mean: fields.mean }, ["a", "b"]), false, false), "");
  assert.equal(sentenceOf(answers, [1, 2]), "a: 1 ± 2, 2 ± 2; b: 3 ± 1, 4 ± 1; truth 1, 2");
});
