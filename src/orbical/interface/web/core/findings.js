// The findings of a scan as the page knows them.

import { createSavedList } from "./saved_list.js";
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
