// The sets of samples that the page knows: made one after the other, sent again where they were forgotten.

import { fromRuns, nameOf, toRuns, toText } from "./sample_sets.js";

const MOST = 256;

/** How a new set joins the present one, as a recipe; the empty name is that of all samples. */
export function joined(present, recipe, how) {
  if (how === "remove") return { difference: [present, recipe] };
  if (!present || how === "new") return recipe;
  return { [how === "add" ? "union" : "intersection"]: [present, recipe] };
}

/**
 * Keep sets by their names. `request(body)` asks for a set, `again(kind)` repeats a request that was
 * refused, `lost(name)` hears of a set that nobody knows.
 */
export function createSets({ samples, store, request, again, lost }) {
  /** @type {Map<string, Uint8Array>} */
  const known = new Map();
  const refusedKinds = new Set();
  const jobs = [];
  const watchers = new Set();
  let mode = "new";
  let running = null;

  function remember(name, bits) {
    known.delete(name);
    known.set(name, bits);
    if (known.size > MOST) known.delete([...known.keys()][0]);
  }

  function next() {
    if (running || !jobs.length) return;
    running = jobs.shift();
    request({ recipe: running.recipe() });
  }

  /** One set at a time: a recipe is read when its turn comes, after `use` of the one before it. */
  function make(recipe, use = (answer) => answer) {
    return new Promise((resolve, reject) => {
      jobs.push({ recipe, resolve: (answer) => resolve(use(answer)), reject });
      next();
    });
  }

  function receive(answer) {
    const job = running;
    running = null;
    if (!answer.error && answer.hash) remember(answer.hash, answer.arrays.bits.data.slice());
    if (answer.error) job?.reject(new Error(answer.error));
    else job?.resolve(answer);
    next();
  }

  /**
   * Choose the samples of a recipe: alone ("new"), or with the present ones ("add", "keep", "remove"), or `upon`
   * another set; `also` changes other fields in the same step.
   */
  function choose(recipe, how = "new", { upon = null, also = {} } = {}) {
    let base = "";
    const use = (answer) => {
      store.set({ subset: answer.hash, ...also });
      return { ...answer, base };
    };
    return make(() => joined((base = upon ?? store.get().subset), recipe, how), use);
  }

  /** An answer was refused for want of a set: send its samples, then ask again. True if that is done. */
  function refused({ kind, set: name, code }) {
    if (code !== "unknown-set") return false;
    const bits = known.get(name);
    if (!bits) {
      if (kind === "set") receive({ error: "unknown set" });
      lost(name);
      return kind !== "export"; // what shows the subset is asked again for all samples
    }
    if (kind === "set") {
      jobs.unshift(running);
      running = null;
    } else refusedKinds.add(kind);
    if (running?.sends === name || jobs.some((job) => job.sends === name)) return true;
    const resolve = () => {
      refusedKinds.forEach(again);
      refusedKinds.clear();
    };
    jobs.unshift({ sends: name, recipe: () => ({ bits: toText(bits) }), resolve, reject: () => lost(name) });
    next();
    return true;
  }

  /** Learn the set of a link, which says its samples where they are few. */
  function learn(name, runs) {
    const bits = runs ? fromRuns(runs, samples) : null;
    if (bits && nameOf(bits, samples) === name) remember(name, bits);
  }

  /** A set that came by a link without its samples: ask for them, to keep them. */
  function fetched({ subset }) {
    if (subset && !known.has(subset)) make(() => subset).catch(() => {});
  }

  const stop = store.subscribe(["subset"], fetched);
  return {
    make,
    choose,
    learn,
    receive,
    refused,
    /** What a lasso does where no key says it. */
    mode: () => mode,
    setMode: (how) => ((mode = how), watchers.forEach((watcher) => watcher())),
    onmode: (watcher) => (watchers.add(watcher), () => watchers.delete(watcher)),
    fetch: () => fetched(store.get()),
    /** The samples of a set as text for a link; nothing where there are too many. */
    runs: (name) => (known.has(name) ? toRuns(known.get(name)) : null),
    destroy: stop,
  };
}
