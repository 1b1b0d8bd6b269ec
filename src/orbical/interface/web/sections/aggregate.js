// The whole data set along the orbit, with a face for each choice of the switch.

import { shows } from "../core/selection_rules.js";
import { createClasses } from "./aggregate_classes.js";
import { createMean } from "./aggregate_mean.js";
import { createRuns } from "./aggregate_runs.js";
import { createSpread } from "./aggregate_spread.js";
import { createFaces } from "./faces.js";
import { createFrame } from "./frame.js";
import { hintFor, hints } from "./help.js";

const FACES = {
  mean: ["mean", "The average at each position", createMean],
  spread: ["spread", "How the samples differ at each position", createSpread],
  classes: ["by class", "A small plot for each class", createClasses],
  runs: ["runs", "Several scans over each other", createRuns],
};

/** The overview: where along the orbit do the models fail? */
export function createSection(el, app) {
  const frame = createFrame({ name: "aggregate", title: "Aggregate", hint: hintFor(hints.aggregate, app.group.kind) });
  el.append(frame.el);
  const choices = shows(app.state).map((name) => [name, ...FACES[name]]);
  const faces = createFaces(frame, app, "show", "Show", choices);
  return { focus: () => faces.now().focus(), destroy: faces.destroy };
}
