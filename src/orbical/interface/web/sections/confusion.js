// What a sample is taken for along its orbit, in a sentence.

import { shortened } from "../draw/format.js";

/**
 * The wrong answer given most often: `{ model, answer, count }`, null where all are right; `predicted` is
 * [models, elements], `expected` the right class of each model.
 */
function mostConfused({ data, shape }, expected) {
  const [models, elements] = shape;
  let most = null;
  for (let m = 0; m < models; m += 1) {
    const counts = new Map();
    for (const answer of data.subarray(m * elements, (m + 1) * elements)) {
      if (answer !== expected[m] && answer >= 0) counts.set(answer, (counts.get(answer) ?? 0) + 1);
    }
    for (const [answer, count] of counts) if (count > (most?.count ?? 0)) most = { model: m, answer, count };
  }
  return most;
}

/** The sentence: "plain predicts 9 at 43 of 72 positions"; empty where nothing is known. */
export function confusion({ models, label, consensus, arrays }, byConsensus, nameOf) {
  const predicted = arrays?.predicted;
  if (!predicted) return "";
  const expected = models.map((_, m) => (byConsensus ? consensus[m] : label));
  if (expected.some((one) => one === null || one === undefined)) return "";
  const elements = predicted.shape[1];
  if (!predicted.data.some((answer) => answer >= 0)) return ""; // not finished
  const most = mostConfused(predicted, expected);
  if (!most) return `correct at all ${elements} positions`;
  return `${shortened(models[most.model], 18)} predicts ${nameOf(most.answer)} at ${most.count} of ${elements} positions`;
}
