import assert from "node:assert/strict";
import { test } from "node:test";

import { besidePointer } from "../../src/orbical/interface/web/plots/tooltip.js";
import { ramp } from "../../src/orbical/interface/web/draw/colors.js";
import {
  paintHeatmap,
  nearestSorted,
  nearestTurn,
  polarCells,
  polarPlace,
} from "../../src/orbical/interface/web/draw/heatmap.js";
import { modelBounds, spreadLabels } from "../../src/orbical/interface/web/draw/bound_words.js";
import { gridFor, tableNames, tableOf } from "../../src/orbical/interface/web/draw/tile_table.js";

test("a table keeps its shape, and a long row is wrapped into a square", () => {
  assert.deepEqual(tableOf([0, 1, 2, 3], [2, 2]), { rows: 2, columns: 2, cells: Int32Array.of(0, 1, 2, 3) });
  const wrapped = tableOf([...Array(14).keys()], [1, 14]);
  assert.deepEqual([wrapped.rows, wrapped.columns], [4, 4]);
  assert.deepEqual(Array.from(wrapped.cells.slice(12)), [12, 13, -1, -1]);
});

test("the long row of a product is wrapped where a factor changes", () => {
  const inversion = [...Array(16).keys()].map((element) => (element < 8 ? 1 : -1));
  const turned = [...Array(16).keys()].map((element) => element % 3);
  const wrapped = tableOf([...Array(16).keys()], [16], { x: turned, inversion });
  assert.deepEqual([wrapped.rows, wrapped.columns], [2, 8]);
  assert.deepEqual(tableNames(wrapped, { inversion }).rows, { name: "inversion", words: ["1", "−1"], several: false });
  const uneven = inversion.map((_, element) => (element < 5 ? 1 : -1));
  assert.equal(tableOf([...Array(16).keys()], [16], { uneven }).columns, 4);
});

test("cells that only repeat an element stay blank", () => {
  assert.deepEqual(Array.from(tableOf([0, 1, 2, 0], [2, 2]).cells), [0, 1, 2, -1]);
});

test("rows and columns are named by what they share, tiles by the rest", () => {
  const table = tableOf([0, 1, 2, 3], [2, 2]);
  const names = tableNames(table, {
    angle: [0, 180, 0, 180],
    flip: ["plain", "plain", "mirrored", "mirrored"],
    number: [0, 1, 2, 3],
  });
  assert.deepEqual(names.rows, { name: "flip", words: ["plain", "mirrored"], several: false });
  assert.deepEqual(names.columns.words, ["0°", "180°"]);
  assert.deepEqual(names.inside, ["0", "1", "2", "3"]);
});

test("several coordinates of a row are written with their names", () => {
  const names = tableNames(tableOf([0, 1], [2, 1]), { flip: ["plain", "mirrored"], time: [1, -1] });
  assert.deepEqual(names.rows.words, ["plain, forward", "mirrored, reversed"]);
  assert.ok(names.rows.several);
});

test("panels fill a box: beside each other where it is wide, below where it is high", () => {
  const gaps = { x: 0, y: 0 };
  assert.deepEqual(gridFor(2, 1, 200, 100, 1, gaps), { across: 2, columns: 2, down: 1, width: 100, height: 100 });
  assert.deepEqual(gridFor(2, 1, 100, 200, 1, gaps).down, 2);
  assert.deepEqual(gridFor(2, 3, 300, 200, 1, gaps).across, 1);
  const crowded = gridFor(2, 3, 20, 20, 1, { x: 20, y: 34 }); // on a phone, under a table
  assert.ok(crowded.width > 0 && crowded.height > 0);
});

test("a heat map shows each cell's value, grays what is missing, leaves out what is no cell", () => {
  const pixels = new Uint8ClampedArray(16);
  paintHeatmap(pixels, [1, 0, 2, -1], Float32Array.of(0, 1, NaN), [0, 1], false);
  const table = ramp("sequential");
  assert.deepEqual(Array.from(pixels.slice(0, 4)), [...table.slice(-3), 255]);
  assert.deepEqual(Array.from(pixels.slice(4, 8)), [...table.slice(0, 3), 255]);
  assert.deepEqual(Array.from(pixels.slice(8, 12)), [227, 227, 227, 255]);
  assert.equal(pixels[15], 0);
  paintHeatmap(pixels, [0, 1, 2, -1], Float32Array.of(-2, 0, 2), [2, -2], false, "diverging");
  const apart = ramp("diverging");
  assert.deepEqual(Array.from(pixels.slice(0, 3)), [...apart.slice(-3)]); // lower is better
  assert.deepEqual(Array.from(pixels.slice(4, 7)), [...apart.slice(3 * 128, 3 * 129)]);
  assert.deepEqual(Array.from(pixels.slice(8, 11)), [...apart.slice(0, 3)]);
});

test("on slices the right is azimuth 0, up is 90, and the rim is the largest angle", () => {
  assert.deepEqual(polarPlace(1, 0, 180), [0, 180]);
  assert.deepEqual(polarPlace(0, 0.5, 180), [90, 90]);
  const cells = polarCells(41, [0, 90, 180, 270], [0, 90, 180], (a, r) => 10 * a + r);
  const at = (row, column) => cells[row * 41 + column];
  assert.equal(at(20, 40), 2);
  assert.equal(at(0, 20), 12);
  assert.equal(at(20, 10), 21);
  assert.equal(at(20, 20) % 10, 0);
  assert.equal(at(0, 0), -1);
});

test("nearest azimuth across the turn, nearest angle by the middle between two", () => {
  assert.equal(nearestTurn([0, 90, 180, 270], 350), 0);
  assert.equal(nearestSorted([0, 45, 90], 23), 1);
  assert.equal(nearestSorted([0, 45, 90], 22), 0);
});

test("bounds are read from plain numbers and from named bounds; what does not apply is missing", () => {
  const plain = modelBounds({ name: "a", accuracy: 0.5, ece: 0.2, low: 0.1, high: 0.6 }, { ceiling: 0.9 });
  assert.deepEqual(plain, { name: "a", color: undefined, accuracy: 0.5, ece: 0.2, low: 0.1, high: 0.6, ceiling: 0.9 });
  const named = modelBounds({
    name: "a",
    about: { accuracy: 0.7 },
    bounds: {
      ece: { value: 0.3, applies: true },
      sharp_upper: { value: 0.6, applies: true },
      sharp_lower: { value: null, applies: false },
      accuracy_ceiling: { value: 0.8, applies: true },
    },
  });
  assert.deepEqual([named.accuracy, named.ece, named.high, named.ceiling], [0.7, 0.3, 0.6, 0.8]);
  assert.ok(Number.isNaN(named.low));
});

test("a readout stays inside of its plot and never lies on the pointer", () => {
  const room = [300, 200];
  for (const size of [
    [80, 40],
    [200, 60],
    [290, 50],
  ]) {
    for (let x = 0; x <= 300; x += 20) {
      for (let y = 0; y <= 200; y += 20) {
        const [left, top] = besidePointer([x, y], size, room);
        assert.ok(left >= 0 && top >= 0 && left + size[0] <= 300 && top + size[1] <= 200, `${size} ${x} ${y}`);
        assert.ok(x < left || x > left + size[0] || y < top || y > top + size[1], `covered: ${size} ${x} ${y}`);
      }
    }
  }
});

test("names that would lie on each other stand a line apart, others stay", () => {
  assert.deepEqual(spreadLabels([100, 98, 20], 8, 120), [100, 86, 20]);
  assert.deepEqual(spreadLabels([140], 8, 120), [120]);
});
