// Sets of samples in a report: they live in the page, under the names that Python would give them.
import { nameOf, packed, sizeOf, unpacked } from "../core/sample_sets.js";
import { insidePolygon } from "../draw/polygon.js";

class UnknownSet extends Error {
  constructor(name) {
    super(`subset: the set ${name} is not in this report`);
    this.about = { code: "unknown-set", set: name };
  }
}

const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

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

export async function sampleSet(context, { recipe }) {
  return context.sets.keep(await made(context, recipe));
}
