import assert from "node:assert/strict";
import { test } from "node:test";

import { counted } from "../../src/orbical/interface/web/core/text.js";
import {
  CLASSES,
  CLASSES_ON_DARK,
  contrast,
  inkOf,
  modelInk,
  parse,
} from "../../src/orbical/interface/web/draw/colors.js";
import {
  apart,
  distinct,
  ends,
  precise,
  sharedEnds,
  shortened,
  significant,
} from "../../src/orbical/interface/web/draw/format.js";
import { fittedNames } from "../../src/orbical/interface/web/draw/svg.js";
import { arrange } from "../../src/orbical/interface/web/plots/panel_grid.js";
import { freeSpot } from "../../src/orbical/interface/web/plots/scatter_layers.js";
import { withColorRange } from "../../src/orbical/interface/web/sections/embedding_parts.js";

test("long names that differ at their ends stay apart", () => {
  const [one, other] = ["resnet18_rotations_seed_2026", "resnet18_rotations_seed_2027"].map((name) =>
    shortened(name, 18),
  );
  assert.notEqual(one, other);
  assert.equal(one.length, 18);
  assert.equal(shortened("plain", 18), "plain");
});

test("names of one list stay apart, however narrow it is, if what differs has room", () => {
  const lists = [
    Array.from({ length: 30 }, (_, n) => `photo_${String(n).padStart(2, "0")}.png`),
    Array.from({ length: 120 }, (_, n) => `photographs of the first year/number ${n}, scanned.tiff`),
    ["a long name that ends", "a long name that ends later", "a long name that began"],
  ];
  for (const names of lists) {
    const shared = sharedEnds(names);
    const own = Math.max(...names.map(({ length }) => length - shared[0] - shared[1]));
    for (let most = own; most < 60; most += 1) {
      const cut = names.map((name) => shortened(name, most, shared));
      assert.equal(new Set(cut).size, names.length, `${most}: ${cut}`);
      assert.ok(cut.every(({ length }) => length <= most));
    }
  }
  const cut = (most) => ["photo_08.png", "photo_18.png"].map((name) => shortened(name, most, [6, 4]));
  assert.deepEqual(cut(9), ["ph…08.png", "ph…18.png"]);
  assert.deepEqual(cut(5), ["p…08…", "p…18…"]);
  assert.deepEqual(sharedEnds(["alike", "alike"]), [0, 0]);
});

test("numbers are written by their first digits, whatever their size", () => {
  assert.equal(significant(0.04604), "0.0460");
  assert.equal(significant(1.32e-15), "1.32e−15");
  assert.equal(significant(-2.345), "−2.35");
  assert.equal(significant(0), "0");
  assert.equal(significant(NaN), "–");
  assert.equal(significant(12345.6), "12346");
  assert.equal(precise("px")(11.04), "11.0 px");
  assert.equal(precise("px")(NaN), "–");
  assert.equal(precise("share")(0.0001), "0.000");
});

test("values of a narrow range have the digits that tell them apart", () => {
  assert.deepEqual(
    [11.312, 11.318].map((value) => apart(value, [11.312, 11.318], 3)),
    ["11.312", "11.318"],
  );
  assert.equal(apart(0.02781, [0.02781, 0.929], 3), "0.0278");
  assert.equal(apart(3e-8, [3e-8, 0.11]), "0"); // rounding
});

test("the ends of a range are told apart, however narrow it is", () => {
  assert.deepEqual(ends([2000, 2019]), ["2000", "2019"]);
  assert.deepEqual(ends([0, 1]), ["0", "1"]);
  assert.deepEqual(ends([0.0871, 0.8604]), ["0.087", "0.86"]);
  assert.deepEqual(ends([-0.85, 0.85]), ["−0.85", "0.85"]);
  assert.deepEqual(ends([-120345, -120312]), ["−120345", "−120312"]);
  assert.deepEqual(ends([7, 7]), ["7", "7"]);
  assert.deepEqual(ends([0, 0.0064]), ["0", "0.0064"]);
});

test("one of a noun is not many", () => {
  assert.equal(counted(1, 1, "images"), "1 image");
  assert.equal(counted(1, 9, "images"), "1 of 9 images");
});

test("values that fill little of a range are colored over what they fill", () => {
  const answer = (...values) => ({
    scale: "sequential",
    range: [0, 1],
    arrays: { values: { data: Float32Array.from(values) } },
  });
  assert.deepEqual(withColorRange(answer(0.5, NaN, 0.75)).range, [0.5, 0.75]);
  assert.deepEqual(withColorRange(answer(0.25, 0.75)).range, [0, 1]);
  assert.deepEqual(withColorRange(answer(0.5, 0.5)).range, [0, 1]);
});

test("the names of classes can be read on either page", () => {
  for (const color of CLASSES) assert.ok(contrast(parse(inkOf(color)), [255, 255, 255]) >= 4.5, color);
  for (const color of CLASSES_ON_DARK) assert.ok(contrast(parse(inkOf(color, true)), [24, 28, 34]) >= 4.5, color);
  assert.ok(Math.abs(contrast([0, 0, 0], [255, 255, 255]) - 21) < 1e-9);
  assert.equal(modelInk("var(--model-3, #CC79A7)"), "var(--model-ink-3, #CC79A7)");
});

test("names stand beside their points, and none upon another", () => {
  const view = { width: 100, height: 100 };
  const first = freeSpot([50, 50], 40, view, []);
  assert.ok(first.y < 50);
  const second = freeSpot([50, 50], 40, view, [first]);
  assert.ok(second.y > 50);
  const aside = freeSpot([20, 50], 30, view, [
    { x: 20, y: 36, wide: 30 },
    { x: 20, y: 64, wide: 30 },
  ]);
  assert.equal(aside.y, 50);
  assert.equal(freeSpot([50, 50], 90, view, [first, second]), null);
});

test("models of several panels stand apart, and words along the bar have their room", () => {
  const cells = { parts: ["", "", ""], aspect: 1, margin: { left: 0, right: 0, bottom: 0 } };
  const { panels, bar } = arrange({ width: 900, height: 200 }, 2, cells, { named: true, right: 60 });
  const gaps = panels.slice(1).map((panel, k) => panel.x - panels[k].x - panel.width);
  assert.ok(gaps[2] > gaps[1] + 10);
  assert.ok(bar.room > bar.length && bar.y + bar.length / 2 + bar.room / 2 <= 200);
});

test("a key below narrow panels leaves them the width", () => {
  const cells = { parts: ["", "", ""], aspect: 1, margin: { left: 60, right: 26, bottom: 8 }, inner: 22, above: 18 };
  const phone = { width: 346, height: 330 };
  const beside = arrange(phone, 1, cells, { named: true, right: 110 });
  const below = arrange(phone, 1, cells, { named: true, below: 78 });
  assert.ok(below.side > 1.5 * beside.side);
  const last = below.panels.at(-1);
  assert.ok(below.bar.y > last.y + last.height && below.bar.y + 78 <= phone.height);
  assert.equal(below.bar.x + below.bar.length, last.x + last.width);
  const middle = below.bar.x + below.bar.length / 2;
  assert.ok(middle + below.bar.room / 2 <= phone.width && middle - below.bar.room / 2 >= 0);
});

test("of long names only what tells them apart is left", () => {
  const runs = ["augmentation-000-degrees-seed0", "augmentation-045-degrees-seed0", "augmentation-045-degrees-seed1"];
  assert.deepEqual(distinct(runs, 12), ["…000…seed0", "…045…seed0", "…045…seed1"]);
  assert.deepEqual(distinct(runs, 40), runs);
  assert.deepEqual(distinct(["trained, epoch 9", "trained, epoch 10, again"], 12), ["…9", "…10, again"]);
  assert.deepEqual(distinct(["resnet18", "resnet18, the larger one"], 12), ["resnet18", "…, the larger one"]);
  assert.deepEqual(distinct(["the only long name"], 12), ["the only long name"]);
  const same = ["one and the same", "one and the same"];
  assert.deepEqual(distinct(same, 12), same);
});

test("names that do not fit keep what tells them apart", () => {
  const document = {
    createElement: () => ({ getContext: () => ({ measureText: ({ length }) => ({ width: 6 * length }) }) }),
  };
  Object.assign(globalThis, { document });
  const names = ["ProteinMPNN, vanilla", "ProteinMPNN, CA-only"];
  assert.deepEqual(fittedNames(names, 120), names);
  assert.deepEqual(fittedNames(names, 60), ["…vanilla", "…CA-only"]);
});
