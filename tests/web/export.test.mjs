// Tables of a report: as the Python package writes them, no cell acts on a spreadsheet or a terminal.
import assert from "node:assert/strict";
import { test } from "node:test";

import { figureWidth } from "../../src/orbical/interface/web/core/page_svg.js";
import { table } from "../../src/orbical/interface/web/hosts/static_answers.js";

test("a text is never a formula, and numbers stay numbers", () => {
  const rows = [
    ["=1+1", "@SUM(1)", "score_=1", -0.5],
    ["-1", "+1", "", 2],
  ];
  assert.equal(table(rows), "'=1+1,'@SUM(1),score_=1,-0.5\n'-1,'+1,,2\n");
});

test("control characters are replaced, and commas and quotes are quoted", () => {
  assert.equal(table([["a\u001b[31mb\nc", 'x,"y"', "\u202e"]]), 'a?[31mb?c,"x,""y""",?\n');
});

test("a figure is as wide as it is shown unless a possible width is asked for", () => {
  assert.equal(figureWidth("", 471.6), 472);
  assert.equal(figureWidth("800", 472), 800);
  for (const asked of ["0", "100", "90000", "wide"]) assert.equal(figureWidth(asked, 472), 472, asked);
});
