import assert from "node:assert/strict";
import { test } from "node:test";

import {
  classPanels,
  classes,
  coarser,
  difference,
  elsewhere,
  mapOf,
  steadyRanges,
  tableOf,
  valuePanels,
} from "../../src/orbical/interface/web/views/maps.js";
import { sideOf } from "../../src/orbical/interface/web/views/tile.js";

const field = (numbers, shape) => ({ data: Float32Array.from(numbers), shape });

test("a model's map is cut out of all maps, and what all share is held once", () => {
  const all = field([1, 2, 3, 4], [2, 1, 2]);
  assert.deepEqual(Array.from(mapOf(all, 1).data), [3, 4]);
  assert.deepEqual(Array.from(mapOf(field([1, 2], [1, 1, 2]), 1).data), [1, 2]);
});

test("classes are whole numbers, and those outside the image are missing", () => {
  const map = classes(mapOf(field([0.002, 1.999, -1, -0.998], [1, 2, 2]), 0));
  assert.deepEqual(Array.from(map.data), [0, 2, NaN, NaN]);
});

test("maps are compared in the middle of cells, where both are known", () => {
  const answer = { data: Float32Array.from([0, NaN]), rows: 1, columns: 2 };
  const finer = { data: Float32Array.from([9, 1, 9, 1]), rows: 1, columns: 4 };
  assert.deepEqual(Array.from(difference(answer, finer).data), [1, NaN]);
});

test("each model has its classes, differences and entropy, and the truth comes once", () => {
  const fields = {
    class_map: field([0, 1, 1, 1], [2, 1, 2]),
    truth_map: field([0, 0, 0, 0], [2, 1, 2]),
    map_vs_consensus: field([0, 1, 0, 0], [2, 1, 2]),
    entropy_map: field([0.5, 0.5, 0.1, 0.1], [2, 1, 2]),
  };
  const content = { fields, models: ["a", "b"], colors: ["red", "blue"] };
  const { first, rows } = classPanels(content);
  assert.deepEqual(
    [...first, ...rows.flat()].map(({ title }) => title),
    ["truth", "a", "error", "entropy", "b", "error", "entropy"],
  );
  assert.deepEqual(Array.from(rows[0][1].map.data), [0, 1]); // against the truth, which is 0
  const titles = (given) => classPanels({ ...content, ...given }).rows[0].map(({ title }) => title);
  assert.deepEqual(titles({ byConsensus: true }), ["a", "differs", "entropy"]);
  assert.deepEqual(titles({ byBoth: true }), ["a", "error", "differs", "entropy"]);
  const wide = tableOf({ first, rows }, 800, 200);
  assert.deepEqual(
    wide.map((row) => row.length),
    [4, 4],
  );
  assert.equal(wide[1][0], null);
  assert.equal(tableOf({ first, rows }, 200, 400).length, 3);
});

test("a stored consensus moved along is compared with, in place of the stored differences", () => {
  const fields = { class_map: field([0, 1], [1, 1, 2]), map_vs_consensus: field([0, 0], [1, 1, 2]) };
  const consensus = { moved: field([1, 1], [1, 1, 2]) };
  const { rows } = classPanels({ fields, consensus, models: ["a"], colors: [""] });
  assert.deepEqual(Array.from(rows[0][1].map.data), [1, 0]);
});

test("what comes from outside the image does not differ from the consensus", () => {
  const fields = { class_map: field([0, 1], [1, 1, 2]), entropy_map: field([0.5, NaN], [1, 1, 2]) };
  const consensus = { moved: field([1, 0], [1, 1, 2]) };
  const { rows } = classPanels({ fields, consensus, models: ["a"], colors: [""] });
  assert.deepEqual(Array.from(rows[0][1].map.data), [1, NaN]);
});

test("squares fill the room and never vanish", () => {
  assert.equal(sideOf(2, 1, 205, 400), 100);
  assert.ok(sideOf(9, 9, 10, 10) >= 40);
});

test("maps of values share a range with the truth, and errors begin at 0", () => {
  const fields = {
    value_map: field([1, 2, 5, 6], [2, 1, 2]),
    truth_map: field([0, 2, 0, 2], [2, 1, 2]),
    error_map: field([1, 0.5, 5, NaN], [2, 1, 2]),
    map_vs_consensus: field([0, 0, 0, 0], [2, 1, 2]),
  };
  const content = { fields, models: ["a", "b"], colors: ["red", "blue"] };
  const { first, rows } = valuePanels(content);
  assert.deepEqual(
    [...first, ...rows.flat()].map(({ title }) => title),
    ["truth", "a", "error", "b", "error"],
  );
  const ranges = steadyRanges({}, [...first, ...rows.flat()]);
  assert.deepEqual(ranges, { value: [0, 6], error: [0, 5] });
  assert.deepEqual(steadyRanges({ value: [-1, 3] }, first), { value: [-1, 3] });
  const compared = valuePanels({ ...content, byConsensus: true });
  assert.equal(compared.rows[0][1].about, "distance from the consensus");
  const live = { ...content.fields, map_vs_consensus: undefined };
  const answers = valuePanels({ ...content, fields: live, byConsensus: true });
  assert.deepEqual(
    answers.rows.flat().map(({ title }) => title),
    ["a", "b"],
  );
});

test("maps of a volume say where they are stored at the middle slices only", () => {
  const fields = { value_map: field([1, 2], [1, 1, 2]) };
  const at = (slices, shown) => elsewhere({ fields, slices, about: { slices: shown }, models: [], colors: [] });
  assert.equal(at([], [3, 3, 3]), "");
  assert.equal(at([1, 2, 3], [1, 2, 3]), "");
  assert.match(at([1, 2, 3], [3, 3, 3]), /middle slices.*keep="predicted_maps"/i);
});

test("maps that are coarser than their image say so", () => {
  const map = field(new Float32Array(6), [1, 2, 3]);
  const image = field(new Float32Array(24), [1, 4, 6]);
  assert.match(coarser({ fields: { class_map: map }, inputs: { image } }), /2 × 3 of 4 × 6 pixels.*keep="segments"/);
  assert.match(coarser({ fields: { class_map: map }, inputs: { image } }, { command: true }), /--keep segments/);
  assert.match(coarser({ fields: { value_map: map }, inputs: { image } }), /2 × 3 of 4 × 6 pixels\.$/);
  assert.equal(coarser({ fields: { class_map: map }, inputs: { image: map } }), "");
  assert.equal(coarser({ fields: { class_map: map, segments: image }, inputs: { image } }), "");
  assert.equal(coarser({ fields: { class_map: map } }), "");
});
