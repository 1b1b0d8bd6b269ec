import assert from "node:assert/strict";
import { test } from "node:test";

import {
  cornerOf,
  detectionsOf,
  overlap,
  referenceOf,
  rowsOf,
  shiftOf,
  shownOf,
  visible,
} from "../../src/orbical/interface/web/views/boxes.js";

const array = (rows, shape) => ({ data: Float32Array.from(rows.flat(3)), shape });

test("overlap counts only what the view shows", () => {
  assert.equal(overlap([0, 0, 4, 4], [0, 0, 4, 4], [9, 9]), 1);
  assert.equal(overlap([0, 0, 2, 2], [1, 0, 3, 2], [9, 9]), 2 / 6);
  assert.equal(overlap([6, 0, 9, 4], [6, 0, 20, 4], [9, 9]), 1);
  assert.equal(overlap([20, 20, 30, 30], [20, 20, 30, 30], [9, 9]), 0);
  assert.deepEqual(visible([-3, 2, 12, 5], [9, 9]), [0, 2, 9, 5]);
});

test("the view moves against its content, and up is up", () => {
  assert.deepEqual(cornerOf([0, 0], [192, 192], [128, 128]), [32, 32]);
  assert.deepEqual(cornerOf([16, 0], [192, 192], [128, 128]), [16, 32]);
  assert.deepEqual(cornerOf([0, 16], [192, 192], [128, 128]), [32, 48]);
});

test("missing boxes are left out, never drawn at zero", () => {
  const fields = {
    box: array(
      [
        [
          [1, 2, 3, 4],
          [NaN, NaN, NaN, NaN],
        ],
        [
          [5, 6, 7, 8],
          [0, 0, 1, 1],
        ],
      ],
      [2, 2, 4],
    ),
    box_label: array(
      [
        [3, -1],
        [0, 1],
      ],
      [2, 2],
    ),
    box_score: array(
      [
        [0.5, NaN],
        [0.25, 0.125],
      ],
      [2, 2],
    ),
    box_correct: array(
      [
        [1, NaN],
        [0, NaN],
      ],
      [2, 2],
    ),
  };
  assert.deepEqual(detectionsOf(fields, 0), [{ box: [1, 2, 3, 4], label: 3, confidence: 0.5, right: true }]);
  assert.deepEqual(
    detectionsOf(fields, 1).map(({ right }) => right),
    [false, null],
  );
  assert.deepEqual(
    rowsOf(
      array(
        [
          [1, 2],
          [NaN, 3],
        ],
        [1, 2, 2],
      ),
      0,
    ),
    [[1, 2]],
  );
});

test("the truth is the reference, and the model's consensus where there is none", () => {
  const truths = { moved: array([[[1, 1, 2, 2, 4]]], [1, 1, 5]) };
  const consensus = { moved: array([[[9, 9, 9, 9, 0.5, 1, 1]], [[8, 8, 9, 9, 0.5, 2, 1]]], [2, 1, 7]) };
  assert.deepEqual(referenceOf(truths, consensus, 1), { box: [1, 1, 2, 2], label: 4, name: "truth" });
  assert.deepEqual(referenceOf({}, consensus, 1), { box: [8, 8, 9, 9], label: 2, name: "consensus" });
  assert.equal(referenceOf({}, {}, 0), null);
});

test("the shift is the position, or that of the element", () => {
  const state = { group: { coords: { dx: [-2, 0, 2], dy: [4, 0, -4] } } };
  assert.deepEqual(shiftOf(state, { element: 0, position: [1.5, 0.5] }), [1.5, 0.5]);
  assert.deepEqual(shiftOf(state, { element: 0, position: [] }), [-2, 4]);
  assert.deepEqual(shiftOf({ group: { coords: {} } }, { element: 0, position: [] }), [0, 0]);
});

test("the surest detections are shown, and the one that meets the key object", () => {
  const at = (left, label, confidence) => ({ box: [left, 0, left + 10, 10], label, confidence, right: null });
  const [first, second, other, match] = [at(50, 1, 0.9), at(70, 1, 0.8), at(0, 2, 0.7), at(1, 1, 0.3)];
  const key = { box: [0, 0, 10, 10], label: 1 };
  const found = [first, second, other, match];
  assert.deepEqual(shownOf(found, key, [99, 99]), [first, second, match]); // not the other class
  assert.deepEqual(shownOf([match, first, second], key, [99, 99]), [match, first]); // it is among them
  assert.deepEqual(shownOf([first, second, at(30, 1, 0.2)], key, [99, 99]), [first, second]); // none meets it
  assert.deepEqual(shownOf(found, null, [99, 99]), [first, second]);
});
