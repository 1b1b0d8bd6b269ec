// Sets of samples in a report: they live in the page, under the names that Python would give them.
import { nameOf, packed, sizeOf, unpacked } from "../core/sample_sets.js";
import { insidePolygon } from "../draw/polygon.js";

class UnknownSet extends Error {
  constructor(name) {
    super(`subset: the set ${name} is not in this report`);
    this.about = { code: "unknown-set", set: name };
  }
}

// The sets made so far, each as a mask of the samples of the report; at first those of its findings,
// bits [S, ...].
export function createSetStore(samples, { data, shape: [count, bytes] }) {
  const held = new Map();
  const store = {
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

async function bits(context, text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return unpacked(bytes, context.samples);
}

const combined = (both) => async (context, recipes) => {
  const [one, other] = await Promise.all(recipes.map((recipe) => made(context, recipe)));
  return one.map((inside, i) => both(inside, other[i]));
};

const MAKERS = {
  bits,
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
