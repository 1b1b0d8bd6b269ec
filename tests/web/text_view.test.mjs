import assert from "node:assert/strict";
import { test } from "node:test";
import { shared, textOf } from "../../src/orbical/interface/web/views/text.js";

const codes = (...texts) => ({
  data: Float32Array.from(texts.flatMap((text) => Array.from({ length: 4 }, (_, i) => text.codePointAt(i) ?? -1))),
  shape: [texts.length, 4],
});

test("code points become letters, up to the end of a text", () => {
  assert.deepEqual(textOf(codes("ab", "ö")), ["a", "b"]);
  assert.deepEqual(textOf(codes("ab", "ö"), 1), ["ö"]);
  assert.deepEqual(textOf(codes("")), []);
  assert.equal(textOf(undefined), null);
});

test("letters that are not those of the truth are marked", () => {
  assert.deepEqual(shared([..."1x34"], [..."1234"]), [true, false, true, true]);
  assert.deepEqual(shared([..."134"], [..."1234"]), [true, true, true]);
  assert.deepEqual(shared([..."99"], []), [false, false]);
});
