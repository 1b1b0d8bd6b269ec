// Sets of samples in a report: they live in the page, under the names that Python would give them.
import { nameOf, packed, sizeOf, unpacked } from "../core/sample_sets.js";

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
