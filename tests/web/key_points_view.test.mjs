import assert from "node:assert/strict";
import { test } from "node:test";

import { limbs, pointsOf, spoken } from "../../src/orbical/interface/web/views/key_points.js";

const field = (numbers, shape) => ({ data: Float32Array.from(numbers), shape });

test("points of a model are places, and unknown ones are null", () => {
  const all = field([1, 2, 2, NaN, NaN, 0, 5, 6, 2, 7, 8, 1], [2, 2, 3]);
  assert.deepEqual(pointsOf(all, 0), [[1, 2], null]);
  assert.deepEqual(pointsOf(all, 1), [
    [5, 6],
    [7, 8],
  ]);
  assert.deepEqual(pointsOf(undefined, 0), []);
});

test("a limb is drawn where both of its ends are known", () => {
  const points = [[0, 0], null, [1, 1]];
  assert.deepEqual(
    limbs(points, [
      [0, 1],
      [0, 2],
    ]),
    [
      [
        [0, 0],
        [1, 1],
      ],
    ],
  );
});

test("scores are said by name, those against the consensus where it is compared with", () => {
  const fields = { oks: field([0.5], [1]), pck: field([NaN], [1]), score_vs_consensus: field([0.25], [1]) };
  assert.deepEqual(spoken({ fields, models: ["net"] }), ["net: OKS 0.500"]);
  assert.deepEqual(spoken({ fields, models: ["net"], byConsensus: true }), ["net: agreement with the consensus 0.250"]);
});
