import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import {
  consequences,
  picked,
  pinned,
  validated,
  toggled,
} from "../../src/orbical/interface/web/core/selection_rules.js";
import { DEFAULTS, fromFragment, toFragment } from "../../src/orbical/interface/web/core/selection.js";

const cases = JSON.parse(readFileSync(new URL("./selection_cases.json", import.meta.url)));

for (const { fragment, selection } of cases) {
  test(`a selection is written as #${fragment}`, () => {
    assert.equal(toFragment({ ...DEFAULTS, ...selection }), fragment);
  });
  test(`#${fragment} is read as that selection`, () => {
    assert.deepEqual(fromFragment(`#${fragment}`), { ...DEFAULTS, ...selection });
  });
}

test("numbers in a fragment have four decimals at most", () => {
  assert.equal(toFragment({ ...DEFAULTS, position: [12.345678] }), "position=12.3457");
  assert.equal(toFragment({ ...DEFAULTS, position: [-0.00001, 0.1] }), "position=0,0.1");
});

test("unknown and ill-written fields keep their default", () => {
  for (const text of [
    "#sample=one",
    "#color",
    "#who=me",
    "#filter=label",
    "#filter=gap:x..2",
    "#position=,",
    "#sample=1e3",
    "#subset=all",
  ]) {
    assert.deepEqual(fromFragment(text), { ...DEFAULTS }, text);
  }
});

test("a new element forgets the position between elements", () => {
  assert.deepEqual(consequences({ ...DEFAULTS, position: [3] }, { element: 4 }), { element: 4, position: [] });
  assert.deepEqual(consequences(DEFAULTS, { element: 4, position: [20.5] }), { element: 4, position: [20.5] });
});

test("a subset survives every change but that of the scan", () => {
  const chosen = { ...DEFAULTS, subset: "0123456789abcdef" };
  for (const patch of [
    { metric: "ece" },
    { sample: 4 },
    { method: "tsne" },
    { of: "plain" },
    { reference: "consensus" },
  ])
    assert.equal("subset" in consequences(chosen, patch), false, JSON.stringify(patch));
  assert.equal(consequences(chosen, { scan: "other" }).subset, "");
});

test("another scan begins anew", () => {
  const now = { ...DEFAULTS, sample: 9, filter: ["label:1"], metric: "ece" };
  assert.deepEqual(consequences(now, { scan: "other" }), { ...DEFAULTS, scan: "other" });
});

test("models are turned off and on, and never all off", () => {
  const all = ["a", "b", "c"];
  assert.deepEqual(toggled([], "b", all), ["a", "c"]);
  assert.deepEqual(toggled(["a", "c"], "b", all), []);
  assert.deepEqual(toggled(["a"], "a", all), ["a"]);
  assert.deepEqual(toggled(["c"], "a", all), ["a", "c"]);
});

test("a class is picked alone first, then others join it", () => {
  const all = [0, 1, 2, 3];
  assert.deepEqual(picked([], 2, all), [2]);
  assert.deepEqual(picked([2], 1, all), [1, 2]);
  assert.deepEqual(picked([2], 2, all), []);
  assert.deepEqual(picked([0, 1, 2], 3, all), []);
});

test("a sample is pinned and unpinned, and of nine the first one goes", () => {
  assert.deepEqual(pinned([4], 2), [4, 2]);
  assert.deepEqual(pinned([4, 2], 4), [2]);
  assert.deepEqual(pinned([1, 2, 3, 4, 5, 6, 7, 8], 9), [2, 3, 4, 5, 6, 7, 8, 9]);
});

test("a link to what does not exist falls back to what does", () => {
  const state = {
    models: [{ name: "a" }, { name: "b" }],
    metrics: [{ name: "score" }, { name: "ece" }],
    classes: [0, 1],
    methods: ["pca", "tsne"],
    colors: ["mean", "label"],
    columns: [
      { name: "label", kind: "category" },
      { name: "gap", kind: "number", by_model: true },
    ],
    samples: 10,
    live: false,
    task: { labeled: true },
    group: { names: ["0", "1", "2"] },
  };
  const wild = {
    ...DEFAULTS,
    models: ["a", "z"],
    metric: "no",
    filter: ["label:1", "label:1..2", "gap@a:0..", "gap@z:0..", "no:1"],
    method: "umap",
    of: "z",
    color: "gap",
    order: "up",
    scope: "x",
    sample: 99,
    element: 5,
    dense: true,
    reference: "no",
    pins: [3, 99, 3, 0],
    marks: "x",
  };
  const given = validated(wild, state);
  assert.deepEqual(
    [given.models, given.metric, given.filter, given.method, given.of, given.color, given.order],
    [["a"], "", ["label:1", "gap@a:0.."], "pca", "", "mean", "worst"],
  );
  assert.deepEqual(
    [given.scope, given.sample, given.element, given.dense, given.reference, given.pins],
    ["element", 9, -1, false, "truth", [3, 0]],
  );
  const unlabeled = { ...state, task: { labeled: false } };
  for (const reference of ["truth", "both"])
    assert.equal(validated({ ...DEFAULTS, reference }, unlabeled).reference, "consensus");
});
