import assert from "node:assert/strict";
import test from "node:test";

import { createStore } from "../../src/orbical/interface/web/core/store.js";

test("a subscriber hears of its fields, once per change", () => {
  const store = createStore({});
  const heard = [];
  store.subscribe(["sample", "element"], (selection, { changed }) => heard.push([selection.sample, changed]));
  store.set({ sample: 3, element: 2, metric: "ece" });
  store.set({ metric: "score" });
  assert.deepEqual(heard, [[3, ["sample", "element", "metric"]]]);
});

test("the same value again is no change, also for lists", () => {
  const store = createStore({ filter: ["label:6,9"] });
  let heard = 0;
  store.subscribe(["filter"], () => (heard += 1));
  store.set({ filter: ["label:6,9"] });
  assert.equal(heard, 0);
  store.set({ filter: ["label:6"] });
  assert.equal(heard, 1);
});

test("the end of a drag is told even where nothing moved since", () => {
  const store = createStore({});
  const ends = [];
  store.subscribe(["done"], (selection, { done }) => done && ends.push(selection.element));
  store.set({ element: 4 }, { done: false });
  store.set({ element: 5 }, { done: false });
  assert.deepEqual(ends, []);
  store.set({ element: 5 }, { done: true });
  assert.deepEqual(ends, [5]);
});

test("a selection that was handed out does not change under the reader", () => {
  const store = createStore({});
  const before = store.get();
  store.set({ sample: 1 });
  assert.equal(before.sample, 0);
  assert.equal(store.get().sample, 1);
});

test("a subscriber that left hears nothing", () => {
  const store = createStore({});
  let heard = 0;
  const stop = store.subscribe(["sample"], () => (heard += 1));
  store.set({ sample: 1 });
  stop();
  store.set({ sample: 2 });
  assert.equal(heard, 1);
});

test("where a change came from is told", () => {
  const store = createStore({});
  const from = [];
  store.subscribe(["sample"], (_, about) => from.push(about.from));
  store.set({ sample: 1 });
  store.set({ sample: 2 }, { from: "link" });
  assert.deepEqual(from, ["user", "link"]);
});
