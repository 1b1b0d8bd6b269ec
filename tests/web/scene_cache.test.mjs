import assert from "node:assert/strict";
import { test } from "node:test";

import { createSceneCache } from "../../src/orbical/interface/web/core/thumbnails.js";

const scene = { data: Uint8Array.of(1), shape: [1] };

test("a scene that came once completes later places of its sample, and of no other", () => {
  const scenes = createSceneCache();
  assert.equal(scenes.has(3), false);
  scenes.complete({ sample: 3, arrays: { "input/whole": scene } });
  assert.equal(scenes.has(3), true);
  const later = { "input/image": { data: [], shape: [] } };
  assert.equal(scenes.complete({ sample: 3, arrays: later })["input/whole"], scene);
  assert.equal("input/whole" in scenes.complete({ sample: 4, arrays: later }), false);
});

test("only the last scenes are kept", () => {
  const scenes = createSceneCache();
  for (let sample = 0; sample < 17; sample += 1) scenes.complete({ sample, arrays: { "input/whole": scene } });
  assert.deepEqual([scenes.has(0), scenes.has(1), scenes.has(16)], [false, true, true]);
});
