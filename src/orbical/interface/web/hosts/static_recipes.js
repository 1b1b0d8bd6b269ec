// How sets of samples are made in a report, by the recipes that the session knows.
import { unpacked } from "../core/sample_sets.js";
import { insidePolygon } from "../draw/polygon.js";
import { rowsInCell } from "./static_confusion.js";
import { bytesOf } from "./static_sets.js";
import { rowsInBand } from "./static_spread.js";

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
