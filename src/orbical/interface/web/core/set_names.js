// The names of sets as the page knows them.

import { createSavedList } from "./saved_list.js";

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
  };
}
