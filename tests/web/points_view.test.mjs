import assert from "node:assert/strict";
import { test } from "node:test";

import {
  aboutCenter,
  atomOf,
  atomsOf,
  bondsOf,
  cellEdges,
  composition,
  counted,
  dragged,
  learnAtoms,
  lookFrom,
  projected,
  radiusOf,
  uncovered,
} from "../../src/orbical/interface/web/views/points.js";
import { wholeFirst } from "../../src/orbical/interface/web/views/atoms.js";

learnAtoms({ 1: ["H", "#e8e8e8", 0.31], 6: ["C", "#5a5f66", 0.76], 8: ["O", "#e0443e", 0.66] });

const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-9, `${a} is not ${b}`);

test("from the front x points right, y up and z to the viewer", () => {
  const look = lookFrom({ yaw: 0, pitch: 0 });
  [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ].forEach((row, i) => row.forEach((value, j) => near(look[i][j], value)));
});

test("every look is a rotation", () => {
  for (const yaw of [0, 33, 180, 275]) {
    for (const pitch of [-90, -12, 60]) {
      const look = lookFrom({ yaw, pitch });
      for (let i = 0; i < 3; i += 1) {
        for (let j = 0; j < 3; j += 1)
          near(
            look[i].reduce((sum, value, k) => sum + value * look[j][k], 0),
            i === j ? 1 : 0,
          );
      }
      const [a, b, c] = look;
      near(
        a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) + a[2] * (b[0] * c[1] - b[1] * c[0]),
        1,
      );
    }
  }
});

test("from above the front lies below", () => {
  const [[x, y]] = projected([[0, 0, 1]], lookFrom({ yaw: 0, pitch: 90 }), 200, 1);
  near(x, 100);
  assert.ok(y > 150);
});

test("what is near comes last and has the greater depth", () => {
  const places = projected(
    [
      [0, 0, 0.5],
      [0, 0, -1],
      [0, 0, 1],
    ],
    lookFrom({ yaw: 0, pitch: 0 }),
    100,
    1,
  );
  assert.deepEqual(
    places.map((place) => place[2]),
    [-1, 0.5, 1],
  );
});

test("a near point follows the pointer", () => {
  const from = { yaw: 0, pitch: 0 };
  const front = [[0, 0, 1]];
  const [[x0, y0]] = projected(front, lookFrom(from), 100, 1);
  const [[x1, y1]] = projected(front, lookFrom(dragged(from, 10, 6)), 100, 1);
  assert.ok(x1 > x0 && y1 > y0);
});

test("a drag never tips over, and goes round", () => {
  assert.equal(dragged({ yaw: 0, pitch: 80 }, 0, 1000).pitch, 90);
  assert.equal(dragged({ yaw: 0, pitch: -80 }, 0, -1000).pitch, -90);
  near(dragged({ yaw: 10, pitch: 0 }, 40, 0).yaw, 350);
});

test("masked points do not count, and flat points have no height", () => {
  const pos = { data: Float32Array.from([1, 2, 3, 4, 5, 6]), shape: [2, 3] };
  assert.deepEqual(counted(pos, { data: Uint8Array.from([0, 1]) }), [[4, 5, 6]]);
  assert.deepEqual(counted({ data: Float32Array.from([1, 2]), shape: [1, 2] }), [[1, 2, 0]]);
});

test("no point at all has a radius too", () => {
  assert.equal(radiusOf([]), 1);
  assert.equal(radiusOf([[0, 3, 4]]), 5);
});

test("a molecule has bonds between neighbors, and says what it is made of", () => {
  const water = [
    [0, 0, 0.12],
    [0, 0.76, -0.48],
    [0, -0.76, -0.48],
  ];
  assert.deepEqual(bondsOf(water, [8, 1, 1]), [
    [0, 1],
    [0, 2],
  ]);
  assert.equal(composition([8, 1, 1]), "1 O, 2 H");
  assert.equal(composition([92]), "1 Z=92");
});

test("every element has a color, and padding has no atom", () => {
  for (let number = 1; number <= 118; number += 1) assert.match(atomOf(number).color, /^#[0-9a-f]{6}$/);
  const [numbers, mask] = [{ data: [6, 1, 0] }, { data: [1, 1, 0] }];
  assert.deepEqual(atomsOf(numbers, mask), [6, 1]);
  assert.deepEqual(atomsOf(undefined, mask), []);
});

test("the symbol of an atom is written where no nearer atom covers it", () => {
  const places = [
    [50, 50, 0, 0],
    [20, 50, 0, 1],
    [54, 50, 1, 2],
  ];
  const seen = uncovered(places, [6, 6, 1], 40).map((place) => place[3]);
  assert.deepEqual(seen, [1, 2]);
});

test("numbers of the whole molecule stand before those of its atoms", () => {
  const fields = { atom_vs_consensus: { data: [1, 2, 3] }, energy: { data: [1] }, forces: { data: Array(9) } };
  assert.deepEqual(Object.keys(wholeFirst(fields)), ["energy", "atom_vs_consensus", "forces"]);
});

test("a projected point knows which one it is", () => {
  const places = projected(
    [
      [0, 0, 1],
      [0, 0, -1],
    ],
    lookFrom({ yaw: 0, pitch: 0 }),
    100,
    1,
  );
  assert.deepEqual(
    places.map((place) => place[3]),
    [1, 0],
  );
});

test("a periodic cell has twelve edges, a molecule none, and a crystal is seen about its center", () => {
  const cell = { data: Float64Array.from([2, 0, 0, 0, 2, 0, 0, 1, 2]), shape: [3, 3] };
  assert.deepEqual(cellEdges(cell, { data: [0, 0, 0], shape: [3] }), []);
  assert.deepEqual(cellEdges({ data: new Float64Array(9), shape: [3, 3] }, { data: [1, 1, 1], shape: [3] }), []);
  const edges = cellEdges(cell, { data: [1, 1, 0], shape: [3] });
  assert.equal(edges.length, 12);
  const lengths = edges.map(([a, b]) => Math.hypot(...a.map((value, i) => value - b[i])));
  assert.deepEqual(
    lengths.toSorted((a, b) => a - b).map((length) => Number(length.toFixed(3))),
    [...Array.from({ length: 8 }, () => 2), ...Array.from({ length: 4 }, () => 2.236)],
  );
  const { points } = aboutCenter([[1, 1.5, 1]], edges);
  assert.deepEqual(points, [[0, 0, 0]]);
});
