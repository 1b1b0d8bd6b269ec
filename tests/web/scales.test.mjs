import assert from "node:assert/strict";
import { test } from "node:test";

import {
  atLeast,
  colorRange,
  edges,
  isGeometric,
  linear,
  logarithmic,
  nearestPlace,
  rangeOf,
  rings,
  ticks,
  upTo,
} from "../../src/orbical/interface/web/draw/scales.js";
import { decimals, degrees, fixed, formatter, short } from "../../src/orbical/interface/web/draw/format.js";

test("a scale and its inverse undo each other, also upside down", () => {
  for (const scale of [linear([0, 1], [40, 240]), linear([-2, 6], [200, 10]), logarithmic([0.5, 2], [0, 90])]) {
    for (const value of [0.6, 0.9, 1.7]) assert.ok(Math.abs(scale.invert(scale(value)) - value) < 1e-12);
  }
  assert.equal(linear([0, 1], [40, 240])(0.25), 90);
});

test("a scale of no length gives its start instead of NaN", () => {
  assert.equal(linear([3, 3], [5, 9])(3), 5);
});

test("ticks are round, inside the range, and not too many", () => {
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(-64, 64, 5), [-50, 0, 50]);
  assert.deepEqual(ticks(0, 0.0031, 4), [0, 0.001, 0.002, 0.003]);
  for (const [low, high] of [
    [0, 7.3],
    [-1e-6, 3e-6],
    [12, 1200],
    [-5, -4],
  ]) {
    const found = ticks(low, high, 6);
    assert.ok(found.length >= 2 && found.length <= 8, `${low} ${high}: ${found}`);
    assert.ok(found.every((value) => value >= low - 1e-12 && value <= high + 1e-12));
  }
});

test("rings leave the center out and keep the rim", () => {
  assert.deepEqual(rings(0, 1, 4), [0.25, 0.5, 0.75, 1]);
});

test("borders of cells lie half way", () => {
  assert.deepEqual(edges([4, 2, 0]), [5, 3, 1, -1]);
  assert.deepEqual(edges([7]), [6.5, 7.5]);
});

test("factors of a scale are geometric, shifts are not", () => {
  assert.ok(isGeometric([0.5, 0.7071, 1, 1.4142, 2]));
  assert.ok(!isGeometric([1, 2, 3, 4]));
  assert.ok(!isGeometric([-1, 0, 1]));
});

test("the range of values starts at zero and skips what is missing", () => {
  assert.deepEqual(rangeOf([NaN, 0.4, 3]), [0, 3]);
  assert.deepEqual(rangeOf([-2, 1]), [-2, 1]);
  assert.deepEqual(rangeOf([NaN]), [0, 1]);
});

test("the nearest place is found in descending places too", () => {
  assert.equal(nearestPlace([4, 2, 0, -2], 0.9), 2);
});

test("numbers are written with a true minus sign, and a dash where there is none", () => {
  assert.equal(fixed(-0.1234, 2), "−0.12");
  assert.equal(fixed(-0.0001, 2), "0.00");
  assert.equal(fixed(NaN, 2), "–");
  assert.equal(short(0.30000000000000004), "0.3");
  assert.equal(degrees(-5), "355°");
  assert.equal(degrees(359.97), "0°");
  assert.equal(decimals([0, 0.02]), 4);
  assert.equal(formatter("px", [0, 30])(2.25), "2.3 px");
  assert.equal(formatter("share", [0, 1])(0.5), "0.500");
  assert.equal(formatter("", [0, 6e-15])(4.2e-15), "4.20e−15");
  assert.equal(formatter("", [0, 5e-4])(2e-4), "0.000200");
});

test("colors leave out what lies far outside, and a model that diverges", () => {
  const calm = Float32Array.from({ length: 100 }, (_, i) => i / 99);
  assert.deepEqual(colorRange([calm]), [0, 1]);
  assert.ok(colorRange([Float32Array.from([...calm, 500])])[1] <= 1);
  assert.deepEqual(colorRange([calm, calm.map((value) => 1e6 * value)]), [0, 10]);
  assert.deepEqual(colorRange([calm, calm.map((value) => -1e6 * value)]), [-10, 1]);
  const worse = calm.map((value) => 30 * value); // its values are told apart, too
  assert.deepEqual(colorRange([calm, worse]), [0, 30]);
  assert.deepEqual(colorRange([calm, worse, calm.map((value) => 1e6 * value)]), [0, 30]);
  assert.deepEqual(colorRange([new Float32Array(3), calm]), [0, 1]); // one that is perfect
  const rounding = calm.map((value) => 1e-14 * value);
  assert.deepEqual(colorRange([rounding, calm]), [0, 1]); // one that is perfect but for rounding
  assert.deepEqual(colorRange([rounding]), [0, Math.fround(1e-14)]);
  assert.deepEqual(colorRange([Float32Array.of(NaN)]), [0, 1]);
  assert.deepEqual(colorRange([Float32Array.of(0.5, 0.5)]), [0.5, 1.5]);
});

test("a range of colors is no narrower than a share of the whole", () => {
  assert.deepEqual(atLeast([0.2, 0.9], [0, 1], 0.05), [0.2, 0.9]);
  assert.deepEqual(atLeast([1, 1], [0, 1], 0.25), [0.75, 1]);
});

test("curves that fill little of a range end it, and none begins elsewhere", () => {
  assert.deepEqual(upTo([0.1, NaN, 0.3], [0, 1]), [0, 0.3]);
  assert.deepEqual(upTo([0.1, 0.9], [0, 1]), [0, 1]);
  assert.deepEqual(upTo([NaN], [0, 1]), [0, 1]);
  assert.deepEqual(upTo([-0.2, 0.1], [-1, 1]), [-1, 1]); // both sides of zero stay
});
