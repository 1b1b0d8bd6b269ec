import assert from "node:assert/strict";
import test from "node:test";

import { createFindings, createSetNames } from "../../src/orbical/interface/web/core/saved_list.js";

/** A page whose requests are answered by hand. */
function page() {
  const [sent, listeners] = [[], {}];
  const app = {
    state: {},
    sent,
    request: (kind, body) => sent.push(body),
    on: (kind, listener) => ((listeners[kind] = listener), () => delete listeners[kind]),
    answer: (kind, fields) => listeners[kind](fields),
  };
  return app;
}

for (const [kind, field, create] of [
  ["findings", "findings", createFindings],
  ["names", "sets", createSetNames],
]) {
  test(`a change of ${field} made while they are read again is sent after that`, () => {
    const app = page();
    const kept = create(app);
    kept.reload();
    kept.remove("a");
    assert.deepEqual(app.sent, [{}]);
    app.answer(kind, { [field]: [{ name: "a" }], unsaved: "" });
    assert.equal(app.sent.length, 2);
    assert.equal(app.sent[1].do, "delete");
    app.answer(kind, { [field]: [], unsaved: "read-only" });
    assert.deepEqual([kept.list(), kept.unsaved(), app.sent.length], [[], "read-only", 2]);
  });
}
