import assert from "node:assert/strict";
import { test } from "node:test";
import { ceilingWords, leastWords, priceWords } from "../../src/orbical/interface/web/draw/bound_words.js";

test("the ceiling is said for these samples, and for new ones where it is certified", () => {
  const said = ceilingWords({ ceiling: 0.6756, certified: [0.548, 0.697] }, "images");
  assert.match(said, /exceeds an accuracy of 0.676 on these images/);
  assert.match(said, /between 0.548 and 0.697, with 95 % certainty/);
  assert.match(ceilingWords({ ceiling: 1, certified: [0.2, 1] }, "images"), /do not certify/);
  assert.doesNotMatch(ceilingWords({ ceiling: 1, certified: null }, "images"), /certify/);
});

test("the price of symmetry is what a model must break, and what it breaks", () => {
  const above = priceWords({ broken: 0.563, broken_at_least: 0.15, ceiling: 0.573 }, "images");
  assert.match(above, /accuracy of 0.723 is above the ceiling; .*at least 15 %, this one on 56 % of the images\.$/);
  const below = priceWords({ broken: 0, broken_at_least: 0, ceiling: 0.9, averaged: true }, "images");
  assert.equal(below, ": not averaged over the orbit, it breaks the symmetry on 0 % of the images.");
  assert.equal(priceWords({ broken: null }, "images"), "");
});

test("the least error is a range, or a number where both ends agree", () => {
  assert.match(leastWords({ least_low: 0.1, least_high: 0.2 }), /lies between 0.100 and 0.200/);
  assert.match(leastWords({ least_low: 0.1, least_high: 0.1 }), /is 0.100/);
  assert.equal(leastWords({ least_low: null, least_high: 0.1 }), "");
});
