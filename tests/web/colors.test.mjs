import assert from "node:assert/strict";
import { test } from "node:test";

import {
  CLASSES,
  MODELS,
  colorOf,
  colorize,
  dashOf,
  lightness,
  modelColor,
  parse,
  ramp,
  classColor,
  classPlaces,
  manyClasses,
  modelDash,
  readableOn,
} from "../../src/orbical/interface/web/draw/colors.js";
import { classLabels } from "../../src/orbical/interface/web/draw/map_layout.js";
import { FADED, pointRadius, rasterizePoints } from "../../src/orbical/interface/web/draw/point_raster.js";

test("colors are read in the forms that pages write them", () => {
  assert.deepEqual(parse("#0072B2"), [0, 114, 178]);
  assert.deepEqual(parse("#abc"), [170, 187, 204]);
  assert.deepEqual(parse("rgb(1, 2, 3)"), [1, 2, 3]);
});

test("the ramp grows lighter from end to end", () => {
  for (const dark of [false, true]) {
    const table = ramp("sequential", dark);
    let before = -1;
    for (let i = 0; i < 256; i += 15) {
      const now = lightness(Array.from(table.slice(3 * i, 3 * i + 3)));
      assert.ok(now > before, `${dark} ${i}`);
      before = now;
    }
  }
});

test("on a dark page the ramp starts lighter, and ends the same", () => {
  const [light, dark] = [ramp("sequential", false), ramp("sequential", true)];
  assert.deepEqual(Array.from(light.slice(0, 3)), [68, 1, 84]);
  assert.ok(lightness(Array.from(dark.slice(0, 3))) > lightness(Array.from(light.slice(0, 3))) + 0.1);
  assert.deepEqual(light.slice(-3), dark.slice(-3));
});

test("the middle of the diverging ramp has no hue", () => {
  const [red, green, blue] = ramp("diverging").slice(3 * 127, 3 * 127 + 3);
  assert.ok(Math.max(red, green, blue) - Math.min(red, green, blue) < 6);
});

test("values are colored within their range, and missing ones are gray", () => {
  const bytes = colorize([0, 1, 2, NaN], { range: [0, 1] });
  assert.deepEqual(bytes.slice(4, 8), bytes.slice(8, 12));
  assert.deepEqual(Array.from(bytes.slice(12, 16)), [227, 227, 227, 255]);
  assert.equal(colorOf(0, [0, 1]), "rgb(68, 1, 84)");
  assert.equal(readableOn(colorOf(0, [0, 1])), "#ffffff");
  assert.equal(readableOn(colorOf(1, [0, 1])), "#222222");
});

test("classes keep their colors", () => {
  const bytes = colorize([0, 3], { kind: "classes" });
  assert.deepEqual(Array.from(bytes.slice(4, 7)), parse(CLASSES[3]));
});

test("every model has a dash of its own, whichever models are shown", () => {
  assert.equal(dashOf({ color: modelColor(1) }, 0), dashOf({ color: MODELS[1] }, 5));
  const dashes = MODELS.map((_, i) => dashOf({ color: modelColor(i) }, 0));
  assert.equal(new Set(dashes).size, MODELS.length);
  assert.equal(dashes[0], "");
});

const view = { scale: [1, 1], offset: [0, 0], radius: 1.5, opacity: 1 };

test("points become discs in their colors", () => {
  const pixels = new Uint8ClampedArray(4 * 100);
  rasterizePoints(pixels, 10, 10, { xy: [4, 5], colors: [10, 200, 30, 255], mask: null, ...view });
  assert.deepEqual(Array.from(pixels.slice(4 * 54, 4 * 55)), [10, 200, 30, 255]);
  assert.equal(pixels[4 * 50 + 3], 0);
});

test("points of the subset lie on top, others are faint", () => {
  const given = {
    xy: [2, 2, 2, 2, 7, 7],
    colors: [255, 0, 0, 255, 0, 0, 255, 255, 0, 0, 255, 255],
    mask: [1, 0, 0],
    ...view,
  };
  const pixels = new Uint8ClampedArray(4 * 100);
  rasterizePoints(pixels, 10, 10, given);
  assert.deepEqual(Array.from(pixels.slice(4 * 22, 4 * 22 + 3)), [255, 0, 0]);
  assert.equal(pixels[4 * 77 + 3], Math.round(255 * FADED));
});

test("points outside of the picture, or missing, draw nothing and break nothing", () => {
  const pixels = new Uint8ClampedArray(4 * 100);
  rasterizePoints(pixels, 10, 10, {
    xy: [NaN, 1, -50, 3, 0, 0],
    colors: new Uint8Array(12).fill(255),
    mask: null,
    ...view,
  });
  assert.ok(pixels[3] > 0);
  assert.equal(pixels.filter((value) => value > 0).length > 4, true);
  assert.ok(pointRadius(1_000_000) < pointRadius(1000));
});

test("a class is named at the member in the middle of its points", () => {
  const xy = Float32Array.of(0, 0, 1, 0, 9, 0, 5, 5, NaN, 1);
  const found = classLabels(xy, [0, 0, 0, 1, 1], ["six", "nine"], classColor);
  assert.deepEqual(
    found.map(({ text, x, y }) => [text, x, y]),
    [
      ["six", 1, 0],
      ["nine", 5, 5],
    ],
  );
  assert.equal(found[1].color, CLASSES[1]);
  assert.deepEqual(classLabels(new Float32Array(60), [...Array(30).keys()], null, classColor), []);
  const piled = classLabels(Float32Array.of(0, 0, 0.01, 0, 0.3, 0, 0.5, 0), [0, 1, 1, 1], ["a", "b"], classColor);
  assert.ok(piled[1].x - piled[0].x > 0.1); // another member, where the name can be read
});

test("of more classes than colors the most frequent have one each, and the others are gray", () => {
  const few = classPlaces([2, 2, 1], 3);
  assert.deepEqual([few.shown, few.rest, few.place(2)], [[0, 1, 2], 0, 2]);
  const some = classPlaces([907, 12, 12, NaN], 1000); // fewer in the data than colors
  assert.deepEqual([some.shown, some.rest, some.place(12), some.place(907)], [[12, 907], 0, 0, 1]);
  const values = [...Array(30).keys(), 25, 25, 20];
  const many = classPlaces(values, 1000);
  assert.deepEqual([many.shown.slice(0, 3), many.shown.length, many.rest], [[25, 20, 0], CLASSES.length - 1, 21]);
  assert.equal(many.place(29), CLASSES.length - 1);
  assert.ok(Number.isNaN(many.place(NaN)));
});

test("28 classes and 49 models can be told apart", () => {
  for (const dark of [false, true]) {
    const colors = manyClasses(dark).map(parse);
    const apart = (one, other) => Math.hypot(...one.map((part, i) => part - other[i]));
    const least = Math.min(...colors.flatMap((one, i) => colors.slice(i + 1).map((other) => apart(one, other))));
    assert.equal(colors.length, 28);
    assert.ok(least > 20, `${dark}: ${least}`);
  }
  const looks = Array.from({ length: 49 }, (_, place) => `${modelColor(place)} ${modelDash(place)}`);
  assert.equal(new Set(looks).size, 49);
});
