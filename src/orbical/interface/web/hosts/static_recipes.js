// Which classes are taken for which at a position of a report, counted among the samples that it holds.
import { unpacked } from "../core/sample_sets.js";
import { insidePolygon } from "../draw/polygon.js";
import { bytesOf, rowStart } from "./static_context.js";
import { rowsInBand } from "./static_statistics.js";

const MOST_CLASSES = 12;
const MOST_PAIRS = 24;
const REASON = "the predictions are not one class for each sample, or the samples have no labels";

const available = ({ state }) => state.report.scalars.includes("predicted") && Boolean(state.arrays.label);

// The expected class of a sample, and the one that a model predicts at the element.
async function answersOf(context) {
  const { state, reference, samples, element } = context;
  const { data, shape } = (await context.pack.take("values/predicted")).arrays.values;
  const expected = (model, row) =>
    reference === "consensus" ? state.arrays.consensus_class.data[model * samples + row] : state.arrays.label.data[row];
  return (model, row) => [expected(model, row), data[rowStart(shape, model, row) + element]];
}

// The most frequent confusions among codes: expected, predicted and count, and -1 where there are fewer.
function confused(codes, classes) {
  const counts = new Map();
  for (const code of codes) counts.set(code, (counts.get(code) ?? 0) + 1);
  const wrong = [...counts].filter(([code]) => Math.floor(code / classes) !== code % classes);
  wrong.sort(([a, many], [b, more]) => more - many || a - b);
  const pairs = new Int32Array(3 * MOST_PAIRS).fill(-1);
  wrong
    .slice(0, MOST_PAIRS)
    .forEach(([code, count], i) => pairs.set([Math.floor(code / classes), code % classes, count], 3 * i));
  return pairs;
}

export async function confusion(context) {
  if (!available(context)) return { available: false, reason: REASON, arrays: {} };
  const { models, names, element, state } = context;
  const [answers, rows, classes] = [await answersOf(context), await context.rows(), state.classes.length];
  const each = models.map((model) => {
    const judged = rows.map((row) => answers(model, row)).filter(([one, other]) => one >= 0 && Number.isFinite(other));
    return judged.map(([one, other]) => one * classes + other);
  });
  const pairs = new Int32Array(3 * MOST_PAIRS * models.length);
  each.forEach((codes, m) => pairs.set(confused(codes, classes), 3 * MOST_PAIRS * m));
  const arrays = { pairs: { data: pairs, shape: [models.length, MOST_PAIRS, 3] } };
  if (classes <= MOST_CLASSES) {
    const counts = new Int32Array(models.length * classes ** 2);
    each.forEach((codes, m) => codes.forEach((code) => (counts[m * classes ** 2 + code] += 1)));
    arrays.counts = { data: counts, shape: [models.length, classes, classes] };
  }
  return {
    available: true,
    element,
    count: Math.max(0, ...each.map((codes) => codes.length)),
    classes,
    models: models.map((model) => names[model]),
    ...(!state.report.complete && { note: "counts of the samples in this report" }),
    arrays,
  };
}

// The samples of one class that a model takes for another at the element.
export async function rowsInCell(context, { model, expected, predicted }) {
  const [answers, rows, m] = [await answersOf(context), await context.rows(), context.names.indexOf(model)];
  return rows.filter((row) => {
    const [one, other] = answers(m, row);
    return one === expected && other === predicted;
  });
}

async function lasso(context, { polygon, ...map }) {
  const { xy } = await context.map(map);
  return Uint8Array.from({ length: context.samples }, (_, i) =>
    Number(insidePolygon(polygon, xy.data[2 * i], xy.data[2 * i + 1])),
  );
}

async function numbers(context, samples) {
  const mask = new Uint8Array(context.samples);
  for (const sample of samples) mask[sample] = 1;
  return mask;
}

const shown = async (context) => numbers(context, await context.rows());

const bits = async (context, text) => unpacked(bytesOf(text), context.samples);

const combined = (both) => async (context, recipes) => {
  const [one, other] = await Promise.all(recipes.map((recipe) => made(context, recipe)));
  return one.map((inside, i) => both(inside, other[i]));
};

const rowsOf = (find) => async (context, given) => numbers(context, await find(context, given));

const MAKERS = {
  band: rowsOf(rowsInBand),
  bits,
  cell: rowsOf(rowsInCell),
  difference: combined((a, b) => a & ~b & 1),
  intersection: combined((a, b) => a & b),
  lasso,
  samples: numbers,
  shown,
  union: combined((a, b) => a | b),
};

// The mask of what a recipe makes: the name of a set, or an object with one field, as in Python.
async function made(context, recipe) {
  if (typeof recipe === "string") return context.sets.mask(recipe);
  const [[name, given]] = Object.entries(recipe);
  if (!(name in MAKERS)) throw new Error(`recipe: expected one of ${Object.keys(MAKERS).join(", ")}, got ${name}`);
  return MAKERS[name](context, given);
}

export async function sampleSet(context, { recipe }) {
  return context.sets.keep(await made(context, recipe));
}
