// A list that is saved beside the scan, as the page knows it: changes are sent one after the other, none is lost.
import { fromFragment, toFragment } from "./selection.js";
import { validated } from "./selection_rules.js";

/** Keep the `field` of answers of a kind; `on` tells of every answer, with its error if it has one. */
export function createSavedList(app, kind, field, initial = []) {
  const listeners = new Set();
  const waiting = [];
  /** @type {any[]} */
  let list = initial;
  let [unsaved, busy] = ["", false];

  function next() {
    if (busy || !waiting.length) return;
    busy = true;
    app.request(kind, waiting[0]);
  }

  function receive(answer) {
    busy = false;
    waiting.shift();
    if (!answer.error) [list, unsaved] = [answer[field], answer.unsaved];
    for (const listener of listeners) listener(answer.error ?? "");
    next();
  }

  return {
    list: () => list,
    unsaved: () => unsaved,
    change: (message) => (waiting.push(message), next()),
    on: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    destroy: app.on(kind, receive),
  };
}

/** Keep the named sets. */
export function createSetNames(app) {
  const { change, ...kept } = createSavedList(app, "names", "sets");
  return {
    ...kept,
    /** What a set is called; empty where it has no name. */
    of: (hash) => kept.list().find((one) => hash && one.hash === hash)?.name ?? "",
    /** Other pages may have changed them. */
    reload: () => change({}),
    /** Name the samples that are shown: those of the subset that the filters keep. */
    save: (name) =>
      app.sets.make(() => ({ shown: true })).then(({ hash }) => change({ do: "save", name, set: hash }) ?? hash),
    remove: (name) => change({ do: "delete", name }),
    /** Give the selected sample a tag, or take it away: a set that holds it. */
    tag: (name, on) => change({ do: "tag", name, on }),
  };
}

/** A new name for a finding: where a request is repeated, the same one is meant. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The selection as a finding keeps it: the name of the scan depends on what is served. */
export function viewOf(selection) {
  return toFragment({ ...selection, scan: "" });
}

/** Keep the findings; those of a report are part of it. */
export function createFindings(app) {
  const { change, ...kept } = createSavedList(app, "findings", "findings", app.state.report?.findings);
  return {
    ...kept,
    /** Other pages may have changed them. */
    reload: () => app.state.report || change({}),
    save: (finding) => change({ do: "save", finding }),
    remove: (id) => change({ do: "delete", id }),
    move: (id, to) => change({ do: "move", id, to }),
    /** The selection that a finding shows. */
    selection: ({ view }) => validated({ ...fromFragment(view), scan: app.store.get().scan }, app.state),
  };
}
