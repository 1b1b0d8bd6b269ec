// One place on an orbit: the input, moved here in the page, and the answers that the scan stored.
import { canMove, moveInput } from "../moves/index.js";
import { classified, probabilitiesOf, rowStart } from "./static_context.js";
import { consensusOf } from "./static_samples.js";

// Where on an orbit a request is: an element of the scan, or a position between elements, as orbit_positions.py does.
const AXES = { circle: ["angle"], plane: ["dx", "dy"], line: ["scale"] };
const NEAR = 1e-6;

const MATRICES = {
  angle([angle]) {
    const [c, s] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
    return [c, -s, 0, s, c, 0, 0, 0, 1];
  },
  dx: ([dx, dy]) => [1, 0, dx, 0, 1, dy, 0, 0, 1],
  scale: ([scale]) => [scale, 0, 0, 0, scale, 0, 0, 0, 1],
};

// The nearest element, its coordinates, and between elements the matrix of the plane.
export function located(group, element, position) {
  const axes = group.continuous ? (AXES[group.kind] ?? []) : [];
  const coords = axes.map((axis) => group.coords[axis]);
  const still = { element, position: coords.map((values) => values[element]), plane: null, name: group.names[element] };
  if (!position.length || position.length !== axes.length) return still;
  const round = axes[0] === "angle";
  const here = position.map((value, i) =>
    round ? ((value % 360) + 360) % 360 : Math.min(Math.max(value, Math.min(...coords[i])), Math.max(...coords[i])),
  );
  const distances = coords[0].map((_, k) =>
    Math.hypot(
      ...here.map((value, i) => {
        const apart = Math.abs(coords[i][k] - value);
        return round ? Math.min(apart, 360 - apart) : apart;
      }),
    ),
  );
  const nearest = distances.indexOf(Math.min(...distances));
  if (distances[nearest] < NEAR) return located(group, nearest, []);
  const name = axes.map((axis, i) => `${axis} ${Number(here[i].toPrecision(4))}`).join(", ");
  return { element: nearest, position: here, plane: MATRICES[axes[0]](here), name };
}

const sizeOf = (shape) => shape.reduce((product, length) => product * length, 1);

// One sample out of [n, ...].
function rowOf({ data, shape, dtype }, row) {
  const size = sizeOf(shape.slice(1));
  return { data: data.subarray(row * size, (row + 1) * size), shape: shape.slice(1), dtype };
}

// One sample at one place out of [M, n, K, ...], or of all models out of [M, n, ...]; what is the same for
// all models is stored once.
function answersOf({ data, shape }, models, row, element) {
  const tail = shape.slice(element === null ? 2 : 3);
  const size = sizeOf(tail);
  const found = new Float32Array(models.length * size);
  models.forEach((model, i) => {
    const sample = (shape[0] === 1 ? 0 : model) * shape[1] + row;
    const start = (element === null ? sample : sample * shape[2] + element) * size;
    found.set(data.subarray(start, start + size), i * size);
  });
  return { data: found, shape: [models.length, ...tail] };
}

function elementOf({ state }, k, plane) {
  if (plane) return { exact: false, plane };
  const element = { exact: state.move.exact };
  for (const [name, size] of Object.entries({ plane: 9, space: 16, color: 16 })) {
    const part = state.arrays[name]?.data;
    if (part) element[name] = part.subarray(k * size, (k + 1) * size);
  }
  for (const name of ["time", "shift", "gain"]) {
    if (state.arrays[name]) element[name] = state.arrays[name].data[k];
  }
  if (state.arrays.rows) {
    const size = state.arrays.rows.shape[1];
    element.rows = state.arrays.rows.data.subarray(k * size, (k + 1) * size);
  }
  return element;
}

// Run the models of the report on a moved input: their answers replace those of the scan.
async function liveAnswers({ state, models, names, traveling }, input, facts, arrays) {
  const found = { milliseconds: {}, errors: {} };
  for (const [place, model] of models.entries()) {
    const name = names[model];
    if (!input || !traveling.has(name)) continue;
    const start = performance.now();
    try {
      const given = await traveling.run(name, input);
      const probabilities = probabilitiesOf(given, state.report.traveling.outputs);
      found.milliseconds[name] = performance.now() - start;
      const says = { ...classified(probabilities, facts.truth, facts.consensus[place]), probabilities };
      for (const [variable, value] of Object.entries(says)) {
        const values = typeof value === "number" ? [value] : value;
        const shape = typeof value === "number" ? [models.length] : [models.length, values.length];
        const key = `detail/${variable}`;
        arrays[key] ??= { data: new Float32Array(models.length * values.length).fill(NaN), shape };
        arrays[key].data.set(values, place * values.length);
      }
    } catch (/** @type {any} */ error) {
      found.errors[name] = error?.message ?? String(error);
    }
  }
  return { ...found, live: Object.keys(found.milliseconds).length > 0 };
}

async function storedAnswers(context, sample, element) {
  const found = {};
  for (const name of context.state.report.scalars) {
    const { data, shape } = (await context.pack.take(`values/${name}`)).arrays.values;
    const values = context.models.map((model) => data[rowStart(shape, model, sample) + element]);
    found[`detail/${name}`] = { data: Float32Array.from(values), shape: [values.length] };
  }
  return found;
}

export async function place(context, { live = true } = {}) {
  const { state, models, names, pack } = context;
  const { element, position, plane, name } = located(
    state.group,
    context.element,
    live && state.live ? context.selection.position : [],
  );
  const sample = Math.min(context.selection.sample, context.samples - 1);
  const { block } = state.report;
  const row = sample % block;
  const arrays = await storedAnswers(context, sample, element);
  const part = await pack.take(`rows/${Math.floor(sample / block)}`);
  const inputs = {};
  for (const [name, array] of Object.entries(part.arrays)) {
    const [kind, field] = name.split("/");
    if (kind === "input") inputs[field] = rowOf(array, row);
    else if (kind === "detail") arrays[name] = answersOf(array, models, row, element);
    else if (kind === "consensus") arrays[name] = answersOf(array, models, row, field === "moved" ? element : null);
    else if (kind === "truth") arrays[name] = answersOf(array, [0], row, field === "moved" ? element : null);
  }
  const movable = Object.keys(inputs).length && canMove(state.move);
  const moved = movable ? moveInput(state.move, elementOf(context, element, plane), inputs) : {};
  for (const [name, field] of Object.entries(moved)) arrays[`input/${name}`] = field;
  if (state.views.input === "window" && movable) arrays["input/whole"] = Object.values(inputs)[0];
  // Of volumes a report stores the maps of the middle slices.
  const volume = state.views.input === "volume" && Object.values(moved).find(({ shape }) => shape.length === 4);
  const slices = volume ? { slices: volume.shape.slice(1).map((side) => Math.floor(side / 2)) } : {};
  const facts = { truth: state.arrays.label?.data[sample] ?? null, consensus: consensusOf(context, sample) };
  const answered = await liveAnswers(context, live ? Object.values(moved)[0] : null, facts, arrays);
  const details = Object.keys(arrays).filter((name) => name.startsWith("detail/"));
  return {
    sample,
    element,
    position,
    scanned: plane === null,
    name,
    models: models.map((model) => names[model]),
    ...answered,
    ...facts,
    input: movable ? { view: state.views.input, fields: Object.keys(moved), range: {} } : null,
    detail: {
      view: state.views.detail,
      fields: details.map((name) => name.slice(7)),
      steps: part.steps ?? {},
      ...slices,
    },
    arrays,
  };
}

// Several samples at the same place, each under its number: inputs, and what is one number of each model.
export async function pinned(context) {
  const { selection } = context;
  const places = await Promise.all(
    selection.pins.map((sample) => place({ ...context, selection: { ...selection, sample } })),
  );
  const small = ([name, { shape }]) => name.startsWith("input/") || (name.startsWith("detail/") && shape.length === 1);
  const named = places.map(({ arrays }, n) =>
    Object.entries(arrays)
      .filter(small)
      .map(([name, array]) => [`${n}/${name}`, array]),
  );
  const about = places.map((one) => ({ ...one, arrays: undefined }));
  return { pins: about, arrays: Object.fromEntries(named.flat()) };
}
