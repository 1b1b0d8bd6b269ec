import assert from "node:assert/strict";
import { test } from "node:test";
import { lettersOf, textsOf } from "../../src/orbical/interface/web/views/texts.js";

const bytes = (...texts) => {
  const rows = texts.map((text) => [...new TextEncoder().encode(text)]);
  const length = Math.max(...rows.map((row) => row.length)) + 1;
  const data = rows.flatMap((row) => [...row, ...Array(length - row.length).fill(0)]);
  return { data: Uint8Array.from(data), shape: [texts.length, length] };
};

test("bytes become texts, up to the zeros that fill them up", () => {
  assert.deepEqual(textsOf(bytes("an apple", "", "金属 ö")), ["an apple", "", "金属 ö"]);
  assert.deepEqual(textsOf({ data: Uint8Array.from([104, 105]), shape: [2] }), ["hi"]);
});

test("an order names the option at each position", () => {
  assert.deepEqual(lettersOf("order B A C", 3), ["B", "A", "C"]);
  assert.equal(lettersOf("order B A C", 4), null);
  assert.equal(lettersOf("angle 90", 1), null);
});
