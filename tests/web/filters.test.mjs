import assert from "node:assert/strict";
import test from "node:test";

import { clauseOf, parseClause, withClause, writeClause } from "../../src/orbical/interface/web/core/clauses.js";
import { itemsInSight, scrollTo, wholeHeight } from "../../src/orbical/interface/web/core/list_pages.js";
import { binsOfRange, rangeOfBins } from "../../src/orbical/interface/web/draw/scales.js";

test("clauses are written as they are read", () => {
  for (const text of ["label:6,9", "a%20b@m%3A1:..0.25", "x:", "t:a%2E%2Eb,c", "gap:-1..2", "first:Infinity.."]) {
    assert.equal(writeClause(parseClause(text)), text);
  }
  for (const text of ["label", ":3", "gap@:3", "gap:a..b"]) assert.throws(() => parseClause(text), text);
});

test("a clause replaces that of its column and model alone", () => {
  const filter = ["label:6", "gap@a:0.."];
  assert.deepEqual(withClause(filter, { column: "gap", model: "b" }, { low: 1 }), [...filter, "gap@b:1.."]);
  assert.deepEqual(withClause(filter, { column: "gap", model: "a" }, null), ["label:6"]);
  assert.equal(clauseOf(filter, "gap"), null);
});

test("bars and ranges are the same choice", () => {
  const edges = [0, 0.25, 0.5, 0.75, 1];
  for (const bins of [
    [0, 1],
    [1, 1],
    [2, 3],
  ]) {
    assert.deepEqual(binsOfRange(rangeOfBins(bins, edges, 4), edges, 4), bins);
  }
  assert.deepEqual(rangeOfBins([0, 1], edges, 4), { low: -Infinity, high: 0.5 });
  assert.equal(binsOfRange({ low: -Infinity, high: Infinity }, edges, 4), null);
});

test("endless numbers have a bar of their own behind the last edge", () => {
  const edges = [0, 90, 180];
  assert.deepEqual(rangeOfBins([2, 2], edges, 3), { low: Infinity, high: Infinity });
  assert.deepEqual(rangeOfBins([1, 1], edges, 3), { low: 90, high: 180 });
  for (const bins of [
    [2, 2],
    [1, 1],
    [1, 2],
  ]) {
    assert.deepEqual(binsOfRange(rangeOfBins(bins, edges, 3), edges, 3), bins);
  }
});

test("of a million rows those in sight are drawn, from the first to the last", () => {
  const list = { total: 1e6, perLine: 1, lineHeight: 42, height: 300 };
  const whole = wholeHeight(list.total, 1, 42);
  assert.ok(whole <= 8e6);
  assert.equal(itemsInSight({ ...list, scrollTop: 0 }).first, 0);
  assert.equal(itemsInSight({ ...list, scrollTop: whole - 300 }).last, 1e6);
  const top = scrollTo(654321, { ...list, scrollTop: 0 });
  const sight = itemsInSight({ ...list, scrollTop: top });
  assert.ok(sight.first <= 654321 && 654321 < sight.last && sight.last - sight.first < 30);
  assert.equal(scrollTo(654321, { ...list, scrollTop: top }), null);
});
