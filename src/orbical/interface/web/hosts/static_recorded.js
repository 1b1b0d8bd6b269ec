// What Python recorded of a subset: answers of the session, picked here and never computed.

const SHARED = ["edges", "cumulative_x"]; // arrays that are the same for all models

// One answer of a stack [n, M, ...], of the models shown.
function picked({ data, shape: [, ...shape] }, place, models) {
  const size = shape.reduce((product, length) => product * length, 1);
  const answer = data.subarray(place * size, (place + 1) * size);
  if (!models) return { data: answer, shape };
  const row = size / shape[0];
  const found = new data.constructor(models.length * row);
  models.forEach((model, i) => found.set(answer.subarray(model * row, (model + 1) * row), i * row));
  return { data: found, shape: [models.length, ...shape.slice(1)] };
}

async function answersOf({ pack, state, selection }) {
  const asked = JSON.stringify([[...selection.filter].sort(), selection.subset]);
  const number = state.report.subsets.findIndex((key) => JSON.stringify(key) === asked);
  return number < 0 ? { answers: {} } : pack.take(`subset/${number}`);
}

// The answer of a kind that was recorded for the subset on show, or null; calibration has one at each place.
export async function recorded(context, kind, { metric = context.metric, place = 0 } = {}) {
  const { state, selection, reference, models, names } = context;
  const { answers, arrays: held } = await answersOf(context);
  const fields = { reference, metric: metric.name, scope: selection.scope };
  const name = [kind, ...state.report.recorded[kind].map((field) => fields[field])].join("/");
  if (!answers[name]) return null;
  const about = { ...answers[name][place] };
  const shown = models.map((model) => names[model]);
  if (about.models) about.models = shown;
  if (about.measures) about.measures = about.measures.filter(({ model }) => shown.includes(model));
  const arrays = {};
  for (const [key, array] of Object.entries(held)) {
    const part = key.slice(name.length + 1);
    if (key === `${name}:${part}`) arrays[part] = picked(array, place, SHARED.includes(part) ? null : models);
  }
  return { ...about, arrays };
}

// Why there is no answer for the subset on show.
export function unrecorded({ state }, what) {
  const reason =
    `this report has the ${what} of all ${state.noun}, of classes, of named sets and of findings, ` +
    "not of this subset; open the scan with orbical view";
  return { available: false, reason, arrays: {} };
}

export function axisOf({ low, high }, values) {
  const seen = values.filter((value) => Number.isFinite(value));
  const least = low ?? (seen.length ? seen.reduce((a, b) => Math.min(a, b)) : 0);
  const most = high ?? (seen.length ? seen.reduce((a, b) => Math.max(a, b)) : 1);
  return [least, most > least ? most : least + 1];
}

export async function calibration(context) {
  const { selection, element, elements, state } = context;
  if (!state.calibration) {
    return { available: false, reason: "the scan stores no confidence and correctness", arrays: {} };
  }
  const place = selection.scope === "orbit" ? elements : element;
  const found = (await recorded(context, "calibration", { place })) ?? unrecorded(context, "calibration");
  return { ...found, element };
}

export const consistency = async (context) =>
  (await recorded(context, "consistency")) ?? unrecorded(context, "predictions that change");

export const coverage = async (context) =>
  (await recorded(context, "coverage")) ?? unrecorded(context, "coverage of sets");
