// What a request to a report is about: the selection, read against the state of the scan.
import { keptBy } from "./static_columns.js";
import { createModels } from "./static_models.js";
import { createSetStore } from "./static_sets.js";

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
    };
  };
}

// The place of a row of values in [M or 1, N, K]: what no model takes part in is shared by all.
export function rowStart(shape, model, sample) {
  return ((shape[0] > 1 ? model : 0) * shape[1] + sample) * shape[2];
}
