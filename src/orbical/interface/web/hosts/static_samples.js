// One sample of a report: its response along the orbit, and a small picture of it.
import { factsOf } from "./static_columns.js";
import { rowStart } from "./static_context.js";
import { axisOf } from "./static_statistics.js";

const MOST_HOVERED = 64;

// Rows [models, elements] of one sample, out of values [M or 1, N, K].
function responsesOf({ data, shape }, models, sample) {
  const found = new Float32Array(models.length * shape[2]);
  models.forEach((model, row) => {
    const start = rowStart(shape, model, sample);
    found.set(data.subarray(start, start + shape[2]), row * shape[2]);
  });
  return found;
}

// The class of each model's consensus, where answers are classes.
export function consensusOf({ state, models, samples }, sample) {
  const classes = state.arrays.consensus_class?.data;
  return models.map((model) =>
    classes && classes[model * samples + sample] >= 0 ? classes[model * samples + sample] : null,
  );
}

export async function sample(context) {
  const { selection, perSample, models, names, elements, state } = context;
  const number = Math.min(selection.sample, context.samples - 1);
  const shape = [models.length, elements];
  const values = responsesOf(await context.values(perSample.name), models, number);
  const arrays = { values: { data: values, shape } };
  const { name } = perSample;
  if (selection.reference === "both" && context.variableOf(name, "consensus") !== context.variableOf(name)) {
    const data = responsesOf(await context.values(name, "consensus"), models, number);
    arrays.consensus_values = { data, shape };
  }
  if (context.has("correct")) {
    const correct = responsesOf(await context.values("correct"), models, number);
    arrays.correct = { data: Uint8Array.from(correct, (value) => (value > 0 ? 1 : 0)), shape };
  }
  if (state.report.scalars.includes("predicted")) {
    const stored = (await context.pack.take("values/predicted")).arrays.values;
    arrays.predicted = { data: Int32Array.from(responsesOf(stored, models, number)), shape };
  }
  return {
    sample: number,
    metric: perSample.name,
    models: models.map((model) => names[model]),
    label: state.arrays.label?.data[number] ?? null,
    ...(await factsOf(context, number)),
    ...(state.report.failed[number] && { failed: state.report.failed[number] }),
    consensus: consensusOf(context, number),
    range: axisOf(perSample, [...values, ...(arrays.consensus_values?.data ?? [])]),
    reference: context.reference,
    arrays,
  };
}

// Small pictures [S, h, w, c]: kept apart where inputs are large, else the inputs themselves.
async function thumbnailsOf({ pack, state }, samples) {
  const { thumbnails, picture, block } = state.report;
  if (!thumbnails && !picture) return null;
  const bytes = [];
  let shape;
  for (const one of samples) {
    if (thumbnails) {
      const { data, shape: all } = (await pack.take("thumbnails")).arrays.thumbnail;
      shape = all.slice(1);
      const size = shape.reduce((a, b) => a * b);
      bytes.push(data.subarray(one * size, (one + 1) * size));
    } else {
      const { data, shape: all } = (await pack.take(`rows/${Math.floor(one / block)}`)).arrays[`input/${picture}`];
      const [channels, height, width] = all.slice(1);
      const plane = height * width;
      const start = (one % block) * channels * plane;
      shape = [height, width, channels];
      bytes.push(
        Uint8Array.from({ length: channels * plane }, (_, i) =>
          Math.round(255 * Math.min(1, Math.max(0, data[start + (i % channels) * plane + Math.floor(i / channels)]))),
        ),
      );
    }
  }
  const joined = new Uint8Array(bytes.length * bytes[0].length);
  bytes.forEach((part, i) => joined.set(part, i * part.length));
  return { data: joined, shape: [samples.length, ...shape], dtype: "u1" };
}

export async function hover(context, { samples }) {
  const { perSample, models, names, elements, state } = context;
  const chosen = samples.slice(0, MOST_HOVERED).filter((one) => one < context.samples);
  const all = await context.values(perSample.name);
  const values = new Float32Array(chosen.length * models.length * elements);
  chosen.forEach((one, i) => values.set(responsesOf(all, models, one), i * models.length * elements));
  const arrays = { values: { data: values, shape: [chosen.length, models.length, elements] } };
  const thumbnail = chosen.length ? await thumbnailsOf(context, chosen) : null;
  if (thumbnail) arrays.thumbnail = thumbnail;
  const label = state.arrays.label?.data;
  if (label) arrays.label = { data: Int32Array.from(chosen, (one) => label[one]), shape: [chosen.length] };
  const { low, high } = perSample;
  const known = await Promise.all(chosen.map((one) => factsOf(context, one)));
  return {
    samples: chosen,
    names: known.some(({ name }) => name) ? known.map(({ name }) => name) : [],
    facts: known.map(({ facts }) => facts),
    metric: perSample.name,
    models: models.map((model) => names[model]),
    range: low === null || high === null ? axisOf(perSample, values) : [low, high],
    reference: context.reference,
    arrays,
  };
}
