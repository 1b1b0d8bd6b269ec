import assert from "node:assert/strict";
import { test } from "node:test";
import { slicePicture } from "../../src/orbical/interface/web/views/volume.js";

test("slices of a volume line up in one picture", () => {
  const volume = { data: Float32Array.from({ length: 8 }, (_, i) => i), shape: [1, 2, 2, 2] };
  const picture = (places) => {
    const { data, shape } = slicePicture(volume, places);
    assert.deepEqual(shape, [1, 5, 5]);
    return Array.from(data, (value) => (Number.isNaN(value) ? -1 : value));
  };
  // As orbical.tasks._maps.slice_picture draws the middle ones.
  const middle = [4, 5, -1, 1, 5, 6, 7, -1, 3, 7, -1, -1, -1, -1, -1, 2, 3, -1, -1, -1, 6, 7, -1, -1, -1];
  assert.deepEqual(picture([1, 1, 1]), middle);
  const first = [0, 1, -1, 0, 4, 2, 3, -1, 2, 6, -1, -1, -1, -1, -1, 0, 1, -1, -1, -1, 4, 5, -1, -1, -1];
  assert.deepEqual(picture([0, 0, 0]), first);
});
