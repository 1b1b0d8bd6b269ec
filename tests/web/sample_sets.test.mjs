import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";

import {
  fromRuns,
  nameOf,
  packed,
  sha256,
  sizeOf,
  toRuns,
  toText,
  unpacked,
} from "../../src/orbical/interface/web/core/sample_sets.js";
import { createSets, joined } from "../../src/orbical/interface/web/core/sets.js";
import { createStore, createUndo } from "../../src/orbical/interface/web/core/store.js";

const setOf = (...samples) => packed(Uint8Array.from({ length: 30 }, (_, i) => Number(samples.includes(i))));
const [A, B] = ["a".repeat(16), "b".repeat(16)];

test("the hash is SHA-256, at every length of the last block", () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 1000]) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 7919) % 251);
    assert.equal(sha256(bytes), createHash("sha256").update(bytes).digest("hex"));
  }
});

test("a set is packed with its first sample lowest, and named by its bits", () => {
  const bits = setOf(0, 3, 29);
  assert.deepEqual([...bits], [9, 0, 0, 32]);
  assert.deepEqual(packed(unpacked(bits, 30)), bits);
  assert.equal(sizeOf(bits), 3);
  assert.equal(nameOf(bits, 30), createHash("sha256").update(bits).digest("hex").slice(0, 16));
  assert.equal(nameOf(packed(new Uint8Array(30).fill(1)), 30), "");
  assert.equal(toText(bits), Buffer.from(bits).toString("base64"));
});

test("a small set is written into a link, a large one is not", () => {
  const bits = setOf(0, 3, 4, 5, 29);
  assert.equal(toRuns(bits), "0,3-5,29");
  assert.deepEqual(fromRuns("0,3-5,29", 30), bits);
  assert.equal(toRuns(packed(new Uint8Array(30))), "");
  for (const text of ["30", "5-30", "x", "1,,2", "-3"]) assert.equal(fromRuns(text, 30), null, text);
  assert.equal(toRuns(packed(Uint8Array.from({ length: 5000 }, (_, i) => i % 2))), null);
});

test("a set joins the present one, where all samples are no present set to add to", () => {
  assert.equal(joined(A, B, "new"), B);
  assert.deepEqual(joined(A, B, "add"), { union: [A, B] });
  assert.deepEqual(joined(A, B, "keep"), { intersection: [A, B] });
  assert.deepEqual(joined(A, B, "remove"), { difference: [A, B] });
  assert.equal(joined("", B, "add"), B);
  assert.equal(joined("", B, "keep"), B);
  assert.deepEqual(joined("", B, "remove"), { difference: ["", B] });
});

/** A page with sets: what it asked for, what it repeated, what it lost. */
function bench() {
  const store = createStore({});
  const [asked, repeated, lost] = [[], [], []];
  const sets = createSets({
    samples: 30,
    store,
    request: ({ recipe }) => asked.push(recipe),
    again: (kind) => repeated.push(kind),
    lost: (name) => lost.push(name),
  });
  const answer = (hash, bits = setOf(1)) => sets.receive({ hash, count: 1, arrays: { bits: { data: bits } } });
  return { store, sets, asked, repeated, lost, answer };
}
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

test("sets are made one after the other, each upon the one before", async () => {
  const { store, sets, asked, answer } = bench();
  sets.choose({ samples: [1] });
  sets.choose({ samples: [2] }, "add");
  assert.deepEqual(asked, [{ samples: [1] }]);
  answer(A);
  await settled();
  assert.equal(store.get().subset, A);
  assert.deepEqual(asked[1], { union: [A, { samples: [2] }] });
});

test("a set that was forgotten is sent once, and all that was refused is asked again", async () => {
  const { sets, asked, repeated, answer } = bench();
  const bits = setOf(1, 2);
  sets.learn(nameOf(bits, 30), "1-2");
  const set = nameOf(bits, 30);
  for (const kind of ["aggregate", "list"]) assert.equal(sets.refused({ kind, set, code: "unknown-set" }), true);
  assert.deepEqual(asked, [{ bits: toText(bits) }]);
  answer(set, bits);
  assert.deepEqual(repeated, ["aggregate", "list"]);
  assert.equal(sets.refused({ kind: "list", error: "another" }), false);
});

test("a recipe with a forgotten set is made once that is known again", () => {
  const { store, sets, asked, answer } = bench();
  const [bits, set] = [setOf(4), nameOf(setOf(4), 30)];
  sets.learn(set, "4");
  store.set({ subset: set });
  sets.choose({ samples: [2] }, "add");
  sets.refused({ kind: "set", set, code: "unknown-set" });
  answer(set, bits);
  assert.deepEqual(asked.slice(1), [{ bits: toText(bits) }, { union: [set, { samples: [2] }] }]);
});

test("a set that nobody knows is lost, and said to be", async () => {
  const { store, sets, asked, lost } = bench();
  store.set({ subset: A });
  assert.deepEqual(asked, [A]); // the page keeps the samples of what it shows
  assert.equal(sets.refused({ kind: "set", set: A, code: "unknown-set" }), true);
  assert.deepEqual(lost, [A]);
  assert.equal(sets.refused({ kind: "export", set: A, code: "unknown-set" }), false);
  sets.learn(B, "1-2"); // a link whose samples are not those of its set
  assert.equal(sets.runs(B), null);
});

test("undo and redo walk through what was shown, and leave the rest alone", () => {
  const store = createStore({});
  const undo = createUndo(store);
  assert.deepEqual(undo.can(), { undo: false, redo: false });
  store.set({ subset: A });
  store.set({ sample: 5 });
  store.set({ subset: B });
  assert.equal(undo.undo(), true);
  assert.deepEqual([store.get().subset, store.get().sample], [A, 5]);
  undo.undo();
  assert.equal(store.get().subset, "");
  assert.equal(undo.undo(), false);
  undo.redo();
  undo.redo();
  assert.equal(store.get().subset, B);
  assert.deepEqual(undo.can(), { undo: true, redo: false });
  undo.undo();
  store.set({ subset: "c".repeat(16) });
  assert.deepEqual(undo.can(), { undo: true, redo: false }); // another way was taken
});

test("back and forward of the browser move along the same steps", () => {
  const store = createStore({});
  const undo = createUndo(store);
  store.set({ subset: A });
  store.set({ subset: B });
  store.set({ subset: A }, { from: "link" });
  assert.deepEqual(undo.can(), { undo: true, redo: true });
  undo.redo();
  assert.equal(store.get().subset, B);
  store.set({ subset: "" }, { from: "state" }); // not the reader's doing: no step
  undo.undo();
  assert.equal(store.get().subset, A);
});
