// What the section of the input says where there is nothing to draw.

import assert from "node:assert/strict";
import { test } from "node:test";

import { whyEmpty } from "../../src/orbical/interface/web/sections/input.js";

test("inputs that a report cannot move are not called missing", () => {
  assert.match(whyEmpty({ inputs: true }), /cannot move .* orbical view/);
  assert.match(whyEmpty({ inputs: false }), /stores no inputs. Pass them as data, .* keep="inputs"/);
});

test("what a page says to do is typed as the page was opened", () => {
  assert.match(whyEmpty({ inputs: false, command: true }), /Pass them with --data, .* --keep inputs/);
});
