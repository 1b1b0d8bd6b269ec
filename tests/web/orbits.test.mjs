import assert from "node:assert/strict";
import { test } from "node:test";

import {
  angleAt,
  betweenAngles,
  elementAhead,
  nearestAngle,
  orbitOf,
  placeAt,
  turned,
} from "../../src/orbical/interface/web/draw/orbits.js";
import { arrange, panelAt } from "../../src/orbical/interface/web/plots/panel_grid.js";
import { stepAlong } from "../../src/orbical/interface/web/draw/scales.js";

const near = (one, other, by = 1e-9) => assert.ok(Math.abs(one - other) < by, `${one} is not ${other}`);

test("zero is upwards and angles grow counter-clockwise", () => {
  near(angleAt(100, 40, 100, 100), 0);
  near(angleAt(40, 100, 100, 100), 90);
  near(angleAt(100, 160, 100, 100), 180);
  near(angleAt(160, 100, 100, 100), 270);
});

test("a place at an angle has that angle", () => {
  for (let angle = 0; angle < 360; angle += 7.3) near(angleAt(...placeAt(angle, 53, 80, 90), 80, 90), angle, 1e-9);
});

test("the nearest angle is found across the turn", () => {
  const angles = Array.from({ length: 72 }, (_, k) => 5 * k);
  assert.equal(nearestAngle(angles, 358), 0);
  assert.equal(nearestAngle(angles, 357), 71);
  assert.equal(nearestAngle(angles, 92.4), 18);
  assert.equal(turned(-90), 270);
});

test("between two angles the value lies between theirs, across the turn too", () => {
  const angles = [0, 90, 180, 270];
  near(betweenAngles(angles, [0, 1, 2, 3], 45), 0.5);
  near(betweenAngles(angles, [0, 1, 2, 3], 315), 1.5);
  near(betweenAngles(angles, [0, 1, 2, 3], 90), 1);
});

test("an element that stands in several cells knows all of them", () => {
  const orbit = orbitOf({
    kind: "slices",
    names: ["a", "b"],
    index: { data: [0, 1, 0, 0], shape: [2, 2] },
    identity: 0,
  });
  assert.deepEqual(orbit.cells, [[0, 2, 3], [1]]);
  assert.deepEqual(orbit.shape, [2, 2]);
});

test("a nested list is an index too", () => {
  const orbit = orbitOf({
    kind: "tiles",
    names: ["a", "b", "c", "d"],
    index: [
      [0, 1],
      [2, 3],
    ],
  });
  assert.deepEqual(orbit.shape, [2, 2]);
  assert.deepEqual(Array.from(orbit.index), [0, 1, 2, 3]);
});

test("the element ahead lies in the direction, and the last stays", () => {
  const points = [
    [0, 0, 0],
    [1, 0, 0],
    [5, 0, 0],
    [1, 4, 0],
  ];
  assert.equal(elementAhead(points, 0, [1, 0, 0]), 1);
  assert.equal(elementAhead(points, 2, [1, 0, 0]), 2);
  assert.equal(elementAhead(points, 1, [0, 1, 0]), 3);
});

test("keys lead around a circle, and to the ends of a line", () => {
  assert.equal(stepAlong(0, 72, "ArrowLeft", { around: true }), 71);
  assert.equal(stepAlong(0, 72, "ArrowLeft"), 0);
  assert.equal(stepAlong(70, 72, "PageUp", { around: true }), 7);
  assert.equal(stepAlong(3, 72, "ArrowUp", { shift: true }), 12);
  assert.equal(stepAlong(3, 72, "Home"), 0);
  assert.equal(stepAlong(3, 72, "End"), 71);
  assert.equal(stepAlong(3, 72, "x"), null);
});

test("panels stay inside of their frame, and only the outer ones carry the axes", () => {
  const cells = { parts: ["", "", ""], aspect: 1, margin: { left: 20, right: 5, bottom: 20 }, above: 14, inner: 10 };
  for (const [width, height, models] of [
    [700, 340, 2],
    [270, 215, 3],
    [300, 900, 5],
  ]) {
    const { panels, bar } = arrange({ width, height }, models, cells, { named: true, right: 60 });
    assert.equal(panels.length, 3 * models);
    for (const panel of panels) {
      assert.ok(panel.x >= 20 && panel.y >= 30 && panel.x + panel.width <= bar.x, `${width} ${JSON.stringify(panel)}`);
      assert.ok(panel.y + panel.height <= height - 20);
      assert.equal(panelAt(panels, panel.x + 1, panel.y + 1), panel);
    }
    assert.ok(bar.x + 60 <= width + 1);
  }
});

test("levels stand beside each other, in a row for each model", () => {
  const cells = { parts: [""], aspect: 1, margin: { left: 30, right: 4, bottom: 30 } };
  const { panels } = arrange({ width: 600, height: 300 }, 2, cells, { named: true, right: 60, levels: 4 });
  assert.deepEqual(
    panels.map(({ m, p, level }) => [m, p, level]),
    [0, 1].flatMap((m) => [0, 1, 2, 3].map((level) => [m, 0, level])),
  );
  assert.equal(new Set(panels.map(({ y }) => y)).size, 2);
  assert.ok(panels.every(({ x, level }, k) => level === 0 || x > panels[k - 1].x + panels[k - 1].width));
});
