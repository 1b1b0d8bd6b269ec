import assert from "node:assert/strict";
import { test } from "node:test";

import { classesOf, panelsOf } from "../../src/orbical/interface/web/views/point_classes.js";

const field = (numbers, shape) => ({ data: Float32Array.from(numbers), shape });
const mask = field([1, 1, 0], [3]);

test("classes are those of a model, without padding", () => {
  const both = field([0, 1, -1, 2, 2, -1], [2, 3]);
  assert.deepEqual(classesOf(both, 1, mask), [2, 2]);
  assert.deepEqual(classesOf(field([1, 0, -1], [1, 3]), 1, mask), [1, 0]);
  assert.deepEqual(classesOf(field([1, 0, 3], [3]), 0), [1, 0, 3]);
});

test("the truth stands before the models, or the consensus where it is compared with", () => {
  const given = {
    fields: { point_class: field([0, 1, -1], [1, 3]) },
    inputs: { mask },
    truths: { moved: field([1, 1, -1], [1, 3]) },
    consensus: { moved: field([0, 0, -1], [1, 3]) },
    models: ["net"],
    colors: ["#000000"],
  };
  assert.deepEqual(
    panelsOf(given).map(({ title, kinds }) => [title, kinds]),
    [
      ["truth", [1, 1]],
      ["net", [0, 1]],
    ],
  );
  assert.equal(panelsOf({ ...given, byConsensus: true })[0].title, "consensus");
  assert.equal(panelsOf({ ...given, truths: {} }).length, 1);
});
