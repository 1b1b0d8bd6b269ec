// Requests to a report, and who answers them.
import { DEFAULTS } from "../core/selection.js";
import { aggregate } from "./static_aggregate.js";
import { color } from "./static_colors.js";
import { confusion } from "./static_confusion.js";
import { createContexts } from "./static_context.js";
import { exported } from "./static_export.js";
import { columns } from "./static_histograms.js";
import { list } from "./static_list.js";
import { pinned, place } from "./static_place.js";
import { calibration, consistency, coverage } from "./static_recorded.js";
import { hover, sample } from "./static_samples.js";
import { sampleSet } from "./static_recipes.js";
import { setNames } from "./static_sets.js";
import { subset } from "./static_subset.js";
import { classes } from "./static_small_multiples.js";
import { spread } from "./static_spread.js";

async function embedding(context) {
  const { xy, ...about } = await context.map();
  const { reference, selection } = context;
  return { method: selection.method, of: selection.of, reference, ...about, arrays: { xy } };
}

const bounds = async ({ pack }) => pack.take("bounds");
const worst = async ({ pack }) => pack.take("worst");

const ANSWERS = {
  aggregate,
  consistency,
  columns,
  spread,
  classes,
  embedding,
  color,
  names: setNames,
  set: sampleSet,
  subset,
  list,
  sample,
  hover,
  place,
  pinned,
  calibration,
  confusion,
  coverage,
  bounds,
  worst,
  export: exported,
};

// A function from requests to answers, over the parts of a report.
export function createAnswers(pack) {
  let contexts = null;

  return async ({ kind, sequence, selection, ...extra }) => {
    try {
      const state = await pack.take("state");
      contexts ??= createContexts(pack, state);
      if (kind === "state") return { ...state, kind, sequence };
      const answer = await ANSWERS[kind](contexts({ ...DEFAULTS, ...selection }), extra);
      return { ...answer, kind, sequence };
    } catch (/** @type {any} */ error) {
      return { kind, sequence, error: error?.message ?? String(error), ...error?.about, arrays: {} };
    }
  };
}
