// What the section of the input says where there is nothing to draw.

import assert from "node:assert/strict";
import { test } from "node:test";

import { whyEmpty } from "../../src/orbical/interface/web/sections/input.js";

test("inputs that a report cannot move are not called missing", () => {
  assert.match(whyEmpty({ inputs: true }), /cannot move .* orbical view/);
  assert.match(whyEmpty({ inputs: false }), /stores no inputs/);
});
