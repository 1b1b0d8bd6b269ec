// Larger images in which a field of view moves: each travels once, not with every step of a drag.

const KEPT = 16; // those of the pinned samples, and of some that were selected
const NAME = "input/whole";

/** Keep the scenes of the last samples. */
export function createSceneCache() {
  const known = new Map();

  /** The arrays of a place with its scene: what came with it, else what came before. */
  function complete({ sample, arrays }) {
    const given = arrays[NAME] ?? known.get(sample);
    if (!given) return arrays;
    known.delete(sample);
    known.set(sample, given);
    if (known.size > KEPT) known.delete(known.keys().next().value);
    return { ...arrays, [NAME]: given };
  }

  return { complete, has: (sample) => known.has(sample) };
}
