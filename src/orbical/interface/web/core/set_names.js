// The names of sets as the page knows them: changes are sent one after the other.

/** Keep the named sets; `on` tells of every answer, with its error if it has one. */
export function createSetNames(app) {
  const listeners = new Set();
  const waiting = [];
  /** @type {any[]} */
  let [list, unsaved, busy] = [[], "", false];

  function next() {
    if (busy || !waiting.length) return;
    busy = true;
    app.request("names", waiting[0]);
  }

  function receive(answer) {
    busy = false;
    waiting.shift();
    if (!answer.error) ({ sets: list, unsaved } = answer);
    for (const listener of listeners) listener(answer.error ?? "");
    next();
  }

  function change(message) {
    waiting.push(message);
    next();
  }

  const stop = app.on("names", receive);
  return {
    list: () => list,
    unsaved: () => unsaved,
    /** What a set is called; empty where it has no name. */
    of: (hash) => list.find((one) => hash && one.hash === hash)?.name ?? "",
    /** Other pages may have changed them. */
    reload: () => change({}),
    /** Name the samples that are shown: those of the subset that the filters keep. */
    save: (name) =>
      app.sets.make(() => ({ shown: true })).then(({ hash }) => change({ do: "save", name, set: hash }) ?? hash),
    remove: (name) => change({ do: "delete", name }),
    on: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    destroy: stop,
  };
}
