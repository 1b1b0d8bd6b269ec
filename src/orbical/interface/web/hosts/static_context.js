// What a request to a report is about: the selection, read against the state of the scan.
import { nameOf, packed, sizeOf, unpacked } from "../core/sample_sets.js";
import { keptBy } from "./static_columns.js";

// Mean and variance of every response [M, N] over its orbit, by the weights of the group, over the
// elements at which it has a value; NaN where it has none.
function momentsOf({ data, shape }, weights) {
  const [models, samples, elements] = shape;
  const mean = new Float32Array(models * samples);
  const variance = new Float32Array(models * samples);
  for (let row = 0; row < models * samples; row++) {
    let [share, first, second] = [0, 0, 0];
    const start = row * elements;
    for (let k = 0; k < elements; k++) {
      if (!Number.isFinite(data[start + k])) continue;
      share += weights[k];
      first += weights[k] * data[start + k];
    }
    first /= share;
    for (let k = 0; k < elements; k++) {
      if (Number.isFinite(data[start + k])) second += weights[k] * (data[start + k] - first) ** 2;
    }
    mean[row] = first;
    variance[row] = second / share;
  }
  return { mean, variance, models };
}

export function createContexts(pack, state) {
  const metrics = new Map(state.metrics.map((metric) => [metric.name, metric]));
  const names = state.models.map((model) => model.name);
  const samples = state.samples;
  const elements = state.group.names.length;
  const weights = state.arrays.weights.data;
  const moments = new Map();
  const withoutResult = new Set(state.report.without_result);
  const traveling = createModels(pack, state.report.traveling?.models ?? []);
  const sets = createSetStore(samples, state.arrays.sets, state.report.sets);
  // Only one class has a consensus that it agrees with; of anything else `correct` stays what it is.
  const agreed = state.arrays.consensus_class ? "agrees" : "correct";

  return (selection) => {
    const reference = state.task.labeled && selection.reference !== "consensus" ? "truth" : "consensus";
    const metric = metrics.get(selection.metric || "score");
    if (!metric) throw new Error(`metric: expected one of ${[...metrics.keys()].join(", ")}, got ${selection.metric}`);

    // The variable behind a metric; against the consensus it is another one.
    const variableOf = (name, against = reference) =>
      (against === "consensus" && { score: "score_vs_consensus", correct: agreed }[name]) || name;

    const values = async (name, against = reference) =>
      (await pack.take(`values/${variableOf(name, against)}`)).arrays.values;

    const momentsNamed = async (name) => {
      const variable = variableOf(name);
      if (!moments.has(variable)) moments.set(variable, momentsOf(await values(name), weights));
      return moments.get(variable);
    };

    const map = async (stated = {}) => {
      const { method, of } = { ...selection, ...stated };
      const name = `${method}/${of}/${stated.reference ?? reference}`;
      const maps = await pack.take("maps");
      const missing =
        maps.about[name]?.error ?? `this report leaves out this map (${method}); choose another method or model`;
      if (!maps.arrays[name]) throw new Error(missing);
      return { xy: maps.arrays[name], ...maps.about[name] };
    };

    // The rows of the subset among the samples of the report.
    const rows = async (filter = selection.filter) => {
      const clauses = await Promise.all(filter.map((text) => keptBy({ pack, state, names, samples }, text)));
      const inside = sets.mask(selection.subset);
      const chosen = [];
      for (let i = 0; i < samples; i++) {
        if (clauses.every((kept) => kept(i)) && inside[i]) chosen.push(i);
      }
      return chosen;
    };

    // Of rows, those on which a model has a result: they are counted, and the others have failed.
    const judged = (some) => some.filter((row) => !withoutResult.has(row));

    const placeOf = (name) => names.indexOf(name);
    return {
      pack,
      state,
      sets,
      traveling,
      selection,
      reference,
      metric,
      names,
      samples,
      elements,
      weights,
      perSample: metric.per_sample ? metric : metrics.get("score"),
      models: names.map((_, i) => i).filter((i) => !selection.models.length || selection.models.includes(names[i])),
      of: selection.of ? [placeOf(selection.of)] : names.map((_, i) => i),
      element: selection.element < 0 ? state.group.identity : selection.element,
      has: (name) => metrics.has(name),
      values,
      variableOf,
      moments: momentsNamed,
      map,
      rows,
      judged,
    };
  };
}

// The place of a row of values in [M or 1, N, K]: what no model takes part in is shared by all.
export function rowStart(shape, model, sample) {
  return ((shape[0] > 1 ? model : 0) * shape[1] + sample) * shape[2];
}

class UnknownSet extends Error {
  constructor(name) {
    super(`subset: the set ${name} is not in this report`);
    this.about = { code: "unknown-set", set: name };
  }
}

export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// The sets made so far, each as a mask of the samples of the report; at first those of its findings, bits [S, ...], and
// those with names, under the hashes that they have in the scan.
export function createSetStore(samples, { data, shape: [count, bytes] }, given) {
  /** @type {Map<string, any>} */
  const held = new Map(given.map(({ hash, bits }) => [hash, unpacked(bytesOf(bits), samples)]));
  let named = given.map(({ name, hash, bits }) => ({ name, hash, count: sizeOf(bytesOf(bits)) }));
  const store = {
    named: () => named,
    rename(change) {
      named = change(named);
    },
    mask(name) {
      if (!name) return new Uint8Array(samples).fill(1);
      if (!held.has(name)) throw new UnknownSet(name);
      return held.get(name);
    },
    keep(mask) {
      const bits = packed(mask);
      const name = nameOf(bits, samples);
      held.set(name, mask);
      return { hash: name, count: sizeOf(bits), arrays: { bits: { data: bits, shape: [bits.length] } } };
    },
  };
  for (let i = 0; i < count; i++) store.keep(unpacked(data.subarray(i * bytes, (i + 1) * bytes), samples));
  return store;
}

const without = (name) => (named) => named.filter((one) => one.name !== name);

const CHANGES = {
  delete: ({ name }) => without(name),
  save: ({ name, set }, sets) => {
    const given = { name, hash: set, count: sizeOf(packed(sets.mask(set))) };
    return (named) => [...without(name)(named), given];
  },
};

// The names of sets; a report has no place to save new ones.
export async function setNames({ sets }, message) {
  if (message.do) sets.rename(CHANGES[message.do](message, sets));
  return { sets: sets.named(), unsaved: "a report saves nothing", arrays: {} };
}

// Load the runtime and a model once; `models` are the names in the order of the parts.
export function createModels(pack, names) {
  const sessions = new Map();

  async function opened(name) {
    const ort = /** @type {any} */ (globalThis).ort;
    const [binary, model] = await Promise.all(
      ["runtime", `model/${names.indexOf(name)}`].map(async (part) => (await pack.take(part)).arrays.content.data),
    );
    ort.env.wasm.numThreads = 1; // a page from a file has no threads that share memory
    ort.env.wasm.wasmBinary ??= binary.slice().buffer;
    return ort.InferenceSession.create(model.slice(), { executionProviders: ["wasm"] });
  }

  return {
    has: (name) => names.includes(name),
    /** The first output of a model for one input, numbers [C]. */
    async run(name, { data, shape }) {
      if (!sessions.has(name)) sessions.set(name, opened(name));
      const session = await sessions.get(name);
      const { Tensor } = /** @type {any} */ (globalThis).ort;
      const given = new Tensor("float32", Float32Array.from(data), [1, ...shape]);
      const found = await session.run({ [session.inputNames[0]]: given });
      return Float32Array.from(found[session.outputNames[0]].data);
    },
  };
}

// Class probabilities of what a model gives.
export function probabilitiesOf(outputs, kind) {
  if (kind !== "logits") return outputs;
  const most = outputs.reduce((a, b) => Math.max(a, b));
  const powers = outputs.map((value) => Math.exp(value - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((value) => value / sum);
}

// What a scan of classes says of one answer.
export function classified(probabilities, truth, consensus) {
  const predicted = probabilities.indexOf(probabilities.reduce((a, b) => Math.max(a, b)));
  const known = truth !== null;
  return {
    predicted,
    confidence: probabilities[predicted],
    score: known ? probabilities[truth] : NaN,
    correct: known ? Number(predicted === truth) : NaN,
    score_vs_consensus: consensus === null ? NaN : probabilities[consensus],
  };
}
