// Which answer depends on which fields: a change asks again for exactly what it touches.

import { SHOWN } from "./selection.js";

const MAP = ["method", "of", "reference"]; // the map is of the scores, whatever metric is shown
const METRIC = ["metric", "reference"];

// In the order in which a new page asks.
export const DEPENDS = {
  subset: SHOWN,
  aggregate: ["models", ...METRIC, ...SHOWN],
  consistency: ["models", ...SHOWN],
  spread: ["show", "models", ...METRIC, ...SHOWN],
  classes: ["show", "by", "models", ...METRIC, ...SHOWN],
  runs: ["show", "against", "models", ...METRIC, ...SHOWN],
  sample: ["sample", "models", "dense", ...METRIC],
  place: ["sample", "element", "position", "models", "reference", "slices"],
  pinned: ["pins", "element", "position", "models", "reference"],
  list: ["order", "of", ...METRIC, ...SHOWN],
  embedding: MAP,
  color: ["color", "of", ...METRIC],
  calibration: ["answers", "scope", "element", "models", "reference", ...SHOWN],
  confusion: ["answers", "element", "models", "reference", ...SHOWN],
  coverage: ["answers", "scope", "models", ...SHOWN],
  bounds: ["models"],
  worst: [],
  headline: [],
};

// What is asked for only while the page shows it.
const ONLY = {
  calibration: ({ answers = "reliability" }) => ["reliability", "regions"].includes(answers),
  confusion: ({ answers }) => answers === "confusion",
  coverage: ({ answers }) => answers === "sets",
  classes: ({ show }) => show === "classes",
  pinned: ({ pins = [] }) => pins.length > 0,
  runs: ({ show }) => show === "runs",
  spread: ({ show }) => show === "spread",
};
const wanted = (kind, selection) => ONLY[kind]?.(selection) ?? true;

const PATIENT = ["calibration", "confusion"]; // only one of them is shown
const REST_MS = 120;

/** The kinds of request that a change of fields touches. */
export function affectedRequests(changed, selection) {
  const fields = new Set(changed);
  return Object.keys(DEPENDS).filter((kind) => {
    if (!wanted(kind, selection)) return false;
    if (kind === "calibration" && selection.scope === "orbit") {
      return DEPENDS[kind].some((name) => name !== "element" && fields.has(name));
    }
    return DEPENDS[kind].some((name) => fields.has(name));
  });
}

/** Ask for the kinds that are `offered`, and again upon every change. Calibration waits until a drag rests. */
export function createRefresh(store, request, offered) {
  let timer = null;
  const kinds = Object.keys(DEPENDS).filter(offered);
  const all = Object.values(DEPENDS).flat();

  function ask(kind, extra) {
    if (kinds.includes(kind)) request(kind, extra);
  }

  const stop = store.subscribe(all, (selection, { changed, done }) => {
    for (const kind of affectedRequests(changed, selection)) {
      // Beside the sample that is dragged the others take the scanned positions, until it rests.
      if (kind === "pinned") ask(kind, { live: done });
      else if (!PATIENT.includes(kind) || done) ask(kind);
      else rest(kind);
    }
  });

  function rest(kind) {
    clearTimeout(timer);
    timer = setTimeout(() => ask(kind), REST_MS);
  }

  const everything = () => kinds.filter((kind) => wanted(kind, store.get())).forEach((kind) => ask(kind));
  everything();
  return { again: everything, destroy: () => (stop(), clearTimeout(timer)) };
}
