import assert from "node:assert/strict";
import test from "node:test";

import {
  counted,
  elementNames,
  positionName,
  sharedFolder,
  singular,
} from "../../src/orbical/interface/web/core/text.js";
import { coordinates, nearestElement } from "../../src/orbical/interface/web/core/selection_rules.js";
import { withInterval } from "../../src/orbical/interface/web/sections/aggregate_mean.js";
import { circleAround, scaledAbout } from "../../src/orbical/interface/web/sections/embedding_parts.js";
import { marksOf } from "../../src/orbical/interface/web/sections/worst_case.js";
import {
  labelsOf,
  sentenceOf,
  shownClasses,
  trueClasses,
  winners,
} from "../../src/orbical/interface/web/views/bars.js";
import { pixels, valueRange } from "../../src/orbical/interface/web/views/image.js";

const circle = {
  kind: "circle",
  names: ["angle 0", "angle 90", "angle 180", "angle 270"],
  coords: { angle: [0, 90, 180, 270] },
};

test("elements are named by their coordinates in short words", () => {
  assert.deepEqual(elementNames(circle), ["0°", "90°", "180°", "270°"]);
  const shifts = { names: ["a", "b"], coords: { dx: [-4, 0], dy: [2.5, 0] } };
  assert.deepEqual(elementNames(shifts), ["dx −4, dy 2.5", "dx 0, dy 0"]);
  const mirrors = { names: ["a", "b"], coords: { angle: [0, 90], flip: ["plain", "mirrored"] } };
  assert.deepEqual(elementNames(mirrors), ["0°", "90°, mirrored"]);
  const turns = { names: ["", ""], coords: { plane: ["xy", "yz"], azimuth: [0, 15], angle: [0, 30] } };
  assert.deepEqual(elementNames(turns), ["0°", "30° about yz axis at 15°"]);
  const handed = { names: ["identity", "inversion"], coords: { inversion: [1, -1] } };
  assert.deepEqual(elementNames(handed), ["identity", "inversion"]);
});

test("rotations of space keep their names, which say the angle, the axis and the inversion", () => {
  const names = ["identity", "90° about (0.00, 0.00, 1.00), inversion"];
  const coords = { rx: [0, 0], ry: [0, 0], rz: [0, 90], inversion: [1, -1] };
  assert.deepEqual(elementNames({ names, coords }), names);
  assert.equal(positionName({ kind: "ball", coords: { rx: [], ry: [], rz: [] } }, [1, 2, 3]), "x 1°, y 2°, z 3°");
});

test("a group with coordinates of its own keeps its names", () => {
  assert.deepEqual(elementNames({ names: ["p 0"], coords: { permutation: [0] } }), ["p 0"]);
});

test("a place between elements is named by its position", () => {
  assert.equal(positionName(circle, [-10.26]), "349.7°");
  assert.equal(positionName({ kind: "plane", coords: { dx: [], dy: [] } }, [1.25, -3]), "dx 1.3, dy −3");
});

test("the nearest element, around the circle", () => {
  assert.equal(nearestElement(circle, [350]), 0);
  assert.equal(nearestElement(circle, [44]), 0);
  assert.equal(nearestElement(circle, [46]), 1);
  assert.deepEqual(coordinates(circle, 3), [270]);
  const plane = { names: ["a", "b", "c"], coords: { dx: [0, 4, 0], dy: [0, 0, 4] } };
  assert.equal(nearestElement(plane, [1, 3.5]), 2);
});

test("a subset is counted in words", () => {
  assert.equal(counted(123, 1000, "digits"), "123 of 1,000 digits");
  assert.equal(counted(1000, 1000, "digits"), "1,000 digits");
  assert.equal(singular("digits"), "digit");
});

test("the keyboard's region surrounds a point and grows about it", () => {
  const region = circleAround([0.5, -0.5], 0.1);
  for (const [x, y] of region) assert.ok(Math.abs(Math.hypot(x - 0.5, y + 0.5) - 0.1) < 1e-12);
  for (const [x, y] of scaledAbout(region, [0.5, -0.5], 2)) {
    assert.ok(Math.abs(Math.hypot(x - 0.5, y + 0.5) - 0.2) < 1e-12);
  }
});

test("names are told apart by what follows the folder that they share", () => {
  assert.equal(sharedFolder(["photos/a/1.jpg", "photos/a/2.jpg", "photos/b/1.jpg"]), "photos/");
  assert.equal(sharedFolder(["cats/1.jpg", "dogs/1.jpg", "1.jpg"]), "");
  assert.equal(sharedFolder(["photos/1.jpg"]), "");
  assert.equal(sharedFolder([]), "");
});

test("few classes are all shown, of many the likeliest and the true one", () => {
  assert.deepEqual(shownClasses(new Float32Array(6), 2, 3, [0]), [0, 1, 2]);
  const data = new Float32Array(100);
  for (let c = 0; c < 20; c += 1) data[3 * c] = 1 - c / 100;
  const shown = shownClasses(data, 1, 100, [99]);
  assert.equal(shown.length, 12);
  assert.ok(shown.includes(99) && shown.includes(0) && shown.includes(30));
  assert.ok(!shown.includes(57));
  data.fill(0)[42] = 0.7; // where the predicted class alone is stored, no others are invented
  assert.deepEqual(shownClasses(data, 1, 100, [99]), [42, 99]);
});

test("several labels may apply, and the sentence lists those that a model finds", () => {
  const truth = { moved: { data: Float32Array.from([1, NaN, 1]), shape: [1, 3] } };
  assert.deepEqual(trueClasses(null, truth, 3), [0, 2]);
  assert.deepEqual(trueClasses(1, {}, 3), [1]);
  assert.equal(trueClasses(null, {}, 3), null);
  const words = labelsOf(["a", "b"], [0.9, 0.2, 0.6, 0.1, 0.2, 0.3], 3, 0.5, (c) => "xyz"[c], [0, 2]);
  assert.equal(words, "a: x, z; b: none; true labels: x, z");
});

test("winners and the sentence that says them", () => {
  const { predicted, confidence } = winners(new Float32Array([0.1, 0.75, 0.15, 0.5, 0.25, 0.25]), 2, 3);
  assert.deepEqual([...predicted], [1, 0]);
  assert.deepEqual([...confidence], [0.75, 0.5]);
  const words = sentenceOf(["a", "b"], predicted, confidence, (c) => `class ${c}`, 1);
  assert.equal(words, "a: class 1 at 0.75; b: class 0 at 0.50; true class class 1");
});

test("the range of an image, and its pixels gray or in color", () => {
  assert.deepEqual(valueRange({ data: new Uint8Array([3, 9]), dtype: "u1" }), [0, 255]);
  assert.deepEqual(valueRange({ data: new Float32Array([0, 0.4]) }), [0, 1]);
  assert.deepEqual(valueRange({ data: new Float32Array([0, 200]) }), [0, 255]);
  assert.deepEqual(valueRange({ data: new Float32Array([-2, 2]) }), [-2, 2]);
  const gray = new Uint8ClampedArray(8);
  pixels({ data: new Float32Array([0, 1]), shape: [1, 1, 2] }, [0, 1], gray);
  assert.deepEqual([...gray], [0, 0, 0, 255, 255, 255, 255, 255]);
  const red = new Uint8ClampedArray(4);
  pixels({ data: new Float32Array([1, 0, 0.5]), shape: [3, 1, 1] }, [0, 1], red);
  assert.deepEqual([...red], [255, 0, 128, 255]);
});

test("a share is written in percent with its interval", () => {
  assert.deepEqual(withInterval([0.932, 0.87, 0.97]), ["93 %", " (87–97)"]);
  assert.deepEqual(withInterval([0, 0, 0.031]), ["0 %", " (0–3.1)"]);
  assert.deepEqual(withInterval([1, NaN, NaN]), ["100 %", ""]);
  assert.deepEqual(withInterval([NaN, NaN, NaN]), ["–", ""]);
});

test("worst cases are marks of the models shown and of the samples chosen, with their coordinates", () => {
  const answer = {
    models: ["a", "b"],
    coords: ["angle"],
    arrays: {
      samples: { data: [4, 7] },
      nearest: { data: [1, 2, 3, -1] },
      score: { data: [0.1, 0.2, 0.3, NaN] },
      missed: { data: [0.01, 0.02, 0.03, NaN] },
      coords: { data: [31, 62, 93, NaN] },
    },
  };
  const marks = marksOf(answer, [{ name: "b" }, { name: "other" }, { name: "a" }], (sample) => sample === 7);
  assert.deepEqual(marks, [{ m: 2, element: 2, coords: { angle: 62 }, value: 0.2, missed: 0.02 }]);
  assert.equal(marksOf(answer, [{ name: "b" }], () => true).length, 1);
});
