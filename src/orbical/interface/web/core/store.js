// The selection and who listens to it. Nothing else on the page holds state that a link must carry.

import { DEFAULTS, same } from "./selection.js";

/** Hold a selection; tell subscribers which fields changed, once per change. */
export function createStore(initial) {
  let selection = { ...DEFAULTS, ...initial };
  const subscribers = new Set();

  /** Change fields. `done: false` while a drag goes on; the URL is written only when done. */
  function set(patch, { done = true, from = "user" } = {}) {
    const changed = Object.keys(patch).filter((name) => !same(selection[name], patch[name]));
    if (changed.length) selection = { ...selection, ...patch };
    if (!changed.length && !done) return;
    for (const { fields, callback } of [...subscribers]) {
      const relevant = changed.some((name) => fields.has(name));
      if (relevant || (fields.has("done") && done)) callback(selection, { changed, done, from });
    }
  }

  /** Call back when one of the fields changes ("done": also whenever a change is finished). */
  function subscribe(fields, callback) {
    const entry = { fields: new Set(fields), callback };
    subscribers.add(entry);
    return () => subscribers.delete(entry);
  }

  return { get: () => selection, set, subscribe };
}
