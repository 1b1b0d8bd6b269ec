// The findings of a scan as the page knows them: changes are sent one after the other, none is lost.

import { fromFragment, toFragment } from "./selection.js";
import { validated } from "./selection_rules.js";

/** A new name for a finding: where a request is repeated, the same one is meant. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The selection as a finding keeps it: the name of the scan depends on what is served. */
export function viewOf(selection) {
  return toFragment({ ...selection, scan: "" });
}

/** Keep the findings; `on` tells of every answer, with its error if it has one. */
export function createFindings(app) {
  const listeners = new Set();
  const waiting = [];
  let [list, unsaved] = [app.state.report?.findings ?? [], ""];
  let [asked, stale] = [false, false];

  function next() {
    if (asked || !(waiting.length || stale)) return;
    asked = true;
    stale = false;
    app.request("findings", waiting[0] ?? {});
  }

  function receive(answer) {
    asked = false;
    waiting.shift();
    if (!answer.error) ({ findings: list, unsaved } = answer);
    for (const listener of listeners) listener(answer.error ?? "");
    next();
  }

  function change(message) {
    waiting.push(message);
    next();
  }

  const stop = app.on("findings", receive);
  return {
    list: () => list,
    unsaved: () => unsaved,
    /** Other pages may have changed them; those of a report are part of it. */
    reload: () => app.state.report || ((stale = true), next()),
    save: (finding) => change({ do: "save", finding }),
    remove: (id) => change({ do: "delete", id }),
    move: (id, to) => change({ do: "move", id, to }),
    /** The selection that a finding shows. */
    selection: ({ view }) => validated({ ...fromFragment(view), scan: app.store.get().scan }, app.state),
    on: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    destroy: stop,
  };
}
