import assert from "node:assert/strict";
import test from "node:test";

import { decode, size } from "../../src/orbical/interface/web/core/wire.js";

/** A frame as Python writes it. */
function frame(header, buffers) {
  let text = Buffer.from(JSON.stringify(header));
  text = Buffer.concat([text, Buffer.alloc((4 - (text.length % 4)) % 4, " ")]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  const padded = buffers.flatMap((buffer) => [buffer, Buffer.alloc((4 - (buffer.length % 4)) % 4)]);
  const whole = Buffer.concat([length, text, ...padded]);
  return whole.buffer.slice(whole.byteOffset, whole.byteOffset + whole.length);
}

const bytes = (typed) => Buffer.from(typed.buffer);
const header = {
  kind: "subset",
  sequence: 7,
  title: "Größe · 6°",
  arrays: [
    { name: "mask", dtype: "u1", shape: [3] },
    { name: "values", dtype: "f4", shape: [2, 2] },
    { name: "samples", dtype: "i4", shape: [2] },
    { name: "picture", dtype: "png", shape: [5] },
    { name: "empty", dtype: "f4", shape: [0, 4] },
  ],
};
const buffers = [
  Buffer.from([1, 0, 1]),
  bytes(new Float32Array([0.5, NaN, -1, 2])),
  bytes(new Int32Array([-5, 9])),
  Buffer.from([137, 80, 78, 71, 0]),
  Buffer.alloc(0),
];

test("a frame is read whole", () => {
  const { arrays, ...fields } = decode(frame(header, buffers));
  assert.deepEqual(fields, { kind: "subset", sequence: 7, title: "Größe · 6°" });
  assert.deepEqual([...arrays.mask.data], [1, 0, 1]);
  assert.deepEqual([...arrays.values.data], [0.5, NaN, -1, 2]);
  assert.deepEqual(arrays.values.shape, [2, 2]);
  assert.deepEqual([...arrays.samples.data], [-5, 9]);
  assert.deepEqual([...arrays.picture.data], [137, 80, 78, 71, 0]);
  assert.equal(arrays.empty.data.length, 0);
});

test("arrays lie over the frame without a copy", () => {
  const given = frame(header, buffers);
  assert.equal(decode(given).arrays.values.data.buffer, given);
});

test("a view at an odd place is read too, as notebooks hand it over", () => {
  const given = new Uint8Array(frame(header, buffers));
  for (const shift of [0, 1, 2, 3]) {
    const moved = new Uint8Array(given.length + shift);
    moved.set(given, shift);
    const view = new DataView(moved.buffer, shift);
    assert.deepEqual([...decode(view).arrays.samples.data], [-5, 9]);
  }
});

test("a frame without arrays", () => {
  assert.deepEqual(decode(frame({ kind: "state", sequence: 1, error: "no" }, [])), {
    kind: "state",
    sequence: 1,
    error: "no",
    arrays: {},
  });
});

test("what is cut off or of unknown type is refused", () => {
  const given = frame(header, buffers);
  assert.throws(() => decode(given.slice(0, 20)), /shorter/);
  assert.throws(() => decode(given.slice(0, given.byteLength - 8)), /picture|cut off/);
  const odd = { kind: "x", arrays: [{ name: "a", dtype: "f8", shape: [1] }] };
  assert.throws(() => decode(frame(odd, [Buffer.alloc(8)])), /f8/);
});

test("size is the product of a shape", () => {
  assert.equal(size([2, 3, 4]), 24);
  assert.equal(size([]), 1);
});
