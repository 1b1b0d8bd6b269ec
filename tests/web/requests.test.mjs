import assert from "node:assert/strict";
import test from "node:test";

import { DEPENDS, affectedRequests } from "../../src/orbical/interface/web/core/refresh.js";
import { createRequests } from "../../src/orbical/interface/web/core/requests.js";

/** A bench: what was sent, and a frame that comes when told. */
function bench(limit = 2, now = () => 0) {
  const sent = [];
  let waiting = [];
  const requests = createRequests((message) => sent.push(message), {
    frame: (callback) => waiting.push(callback),
    limit,
    now,
  });
  const tick = () => {
    const due = waiting;
    waiting = [];
    due.forEach((callback) => callback());
  };
  return { requests, sent, tick, frames: () => waiting.length };
}

test("many requests in one frame leave as one, the newest", () => {
  const { requests, sent, tick, frames } = bench();
  for (let i = 0; i < 50; i += 1) requests.request("place", { at: i });
  assert.equal(frames(), 1);
  assert.equal(sent.length, 0);
  tick();
  assert.deepEqual(
    sent.map(({ kind, at }) => [kind, at]),
    [["place", 49]],
  );
});

test("kinds do not wait for one another", () => {
  const { requests, sent, tick } = bench(1);
  requests.request("place", {});
  requests.request("sample", {});
  tick();
  assert.deepEqual(sent.map(({ kind }) => kind).sort(), ["place", "sample"]);
});

test("what can wait is asked for when all else is answered, or long work has begun to answer", () => {
  const { requests, sent, tick } = bench();
  const left = () => sent.map(({ kind }) => kind);
  for (const kind of ["columns", "aggregate", "embedding"]) requests.request(kind, {});
  tick();
  assert.deepEqual(left(), ["aggregate", "embedding"]);
  requests.receive({ kind: "aggregate", sequence: sent[0].sequence });
  tick();
  assert.deepEqual(left(), ["aggregate", "embedding"]);
  requests.receive({ kind: "embedding", sequence: sent[1].sequence, progress: 0.1, arrays: {} });
  tick();
  assert.deepEqual(left(), ["aggregate", "embedding", "columns"]);
});

test("no more than the limit is in flight, and the newest follows the first answer", () => {
  const { requests, sent, tick } = bench(2);
  for (let i = 0; i < 10; i += 1) {
    requests.request("place", { at: i });
    tick();
  }
  assert.deepEqual(
    sent.map(({ at }) => at),
    [0, 1],
  );
  requests.receive({ kind: "place", sequence: sent[0].sequence });
  tick();
  assert.deepEqual(
    sent.map(({ at }) => at),
    [0, 1, 9],
  );
});

test("an answer closes all older requests of its kind: the server answers only the newest", () => {
  const { requests, sent, tick } = bench(2);
  for (let i = 0; i < 2; i += 1) {
    requests.request("place", { at: i });
    tick();
  }
  requests.receive({ kind: "place", sequence: sent[1].sequence });
  for (let i = 2; i < 4; i += 1) {
    requests.request("place", { at: i });
    tick();
  }
  assert.equal(sent.length, 4);
});

test("an answer older than one already shown is dropped", () => {
  const { requests, sent, tick } = bench(2);
  const shown = [];
  requests.on("place", ({ sequence }) => shown.push(sequence));
  for (let i = 0; i < 2; i += 1) {
    requests.request("place", { at: i });
    tick();
  }
  assert.equal(requests.receive({ kind: "place", sequence: sent[1].sequence }), true);
  assert.equal(requests.receive({ kind: "place", sequence: sent[0].sequence }), false);
  assert.deepEqual(shown, [sent[1].sequence]);
});

test("progress is shown and leaves the request open", () => {
  const { requests, sent, tick } = bench(1);
  const shown = [];
  requests.on("embedding progress", ({ progress }) => shown.push(progress ?? "done"));
  requests.request("embedding", {});
  tick();
  requests.receive({ kind: "embedding", sequence: sent[0].sequence, progress: 0.5 });
  requests.request("embedding", {});
  tick();
  assert.equal(sent.length, 1);
  requests.receive({ kind: "embedding", sequence: sent[0].sequence });
  tick();
  assert.equal(sent.length, 2);
  assert.deepEqual(shown, [0.5, "done"]);
});

test("after a lost connection the unanswered is asked again, and only that", () => {
  const { requests, sent, tick } = bench(2);
  requests.request("place", { at: 1 });
  requests.request("sample", { at: 2 });
  tick();
  requests.receive({ kind: "sample", sequence: sent.find(({ kind }) => kind === "sample").sequence });
  requests.close();
  requests.request("list", { at: 3 });
  tick();
  assert.equal(sent.length, 2);
  requests.reopen();
  tick();
  assert.deepEqual(
    sent
      .slice(2)
      .map(({ kind, at }) => [kind, at])
      .sort(),
    [
      ["list", 3],
      ["place", 1],
    ],
  );
});

test("a listener that left hears nothing", () => {
  const { requests } = bench();
  let heard = 0;
  const stop = requests.on("state", () => (heard += 1));
  requests.receive({ kind: "state", sequence: 1 });
  stop();
  requests.receive({ kind: "state", sequence: 2 });
  assert.equal(heard, 1);
});

test("a change asks again for what depends on it and nothing else", () => {
  assert.deepEqual(affectedRequests(["position"], { scope: "element" }), ["place"]);
  assert.deepEqual(affectedRequests(["element"], { scope: "orbit" }), ["place"]);
  assert.deepEqual(affectedRequests(["element"], { scope: "element" }), ["place", "calibration"]);
  assert.deepEqual(affectedRequests(["position"], { scope: "orbit", pins: [4] }), ["place", "pinned"]);
  assert.deepEqual(affectedRequests(["color"], { scope: "element" }), ["color"]);
  assert.deepEqual(affectedRequests(["sample"], { scope: "element" }), ["sample", "place"]);
  assert.ok(Object.values(DEPENDS).every((fields) => !fields.includes("scan")));
});

test("how far work is concerns those who ask for it, what it has so far everybody", () => {
  const sent = [];
  const requests = createRequests((message) => sent.push(message), { frame: (call) => call() });
  const [answers, reports] = [[], []];
  requests.on("embedding", (answer) => answers.push(answer.step));
  requests.on("embedding progress", (answer) => reports.push(answer.step));
  requests.request("embedding", {});
  const { sequence } = sent[0];
  const xy = { xy: {} };
  requests.receive({ kind: "embedding", sequence, progress: 0, arrays: {}, step: 1 });
  requests.receive({ kind: "embedding", sequence, progress: 0.2, arrays: xy, step: 2 });
  requests.receive({ kind: "embedding", sequence, arrays: xy, step: 3 });
  assert.deepEqual([answers, reports], [[2, 3], [1, 2, 3]]); // prettier-ignore
  requests.request("embedding", {});
  requests.stop("embedding");
  assert.deepEqual(sent.at(-1), { kind: "stop", of: "embedding" });
  requests.receive({ kind: "embedding", sequence: sent[1].sequence, stopped: true, step: 4 });
  assert.deepEqual([answers.length, reports.at(-1)], [2, 4]);
  assert.equal(requests.busy(), false);
});

test("a kind is asked for no faster than it is answered, nor slower than ten times a second", () => {
  let time = 0;
  const { requests, sent, tick, frames } = bench(Infinity, () => time);
  const drag = (at) => (requests.request("place", { at }), tick());
  const left = () => sent.map(({ at }) => at);
  drag(0);
  requests.receive({ kind: "place", sequence: sent[0].sequence, took_ms: 50 });
  drag(1); // nothing is in flight
  time = 40;
  drag(2);
  assert.deepEqual(left(), [0, 1]);
  assert.equal(frames(), 1, "what waits is not forgotten when the pointer rests");
  time = 51;
  tick();
  assert.deepEqual(left(), [0, 1, 2]);
  drag(3);
  requests.receive({ kind: "place", sequence: sent[2].sequence, took_ms: 5000 });
  tick();
  assert.deepEqual(left(), [0, 1, 2, 3], "an answer lets the next one go");
  time = 152;
  drag(4);
  assert.deepEqual(left(), [0, 1, 2, 3, 4]);
});
