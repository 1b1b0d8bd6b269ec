// What the answers are worth, for the subset: can the confidence be trusted, what is taken for what,
// and how large are sets that hold the truth?

import { show } from "../core/dom.js";
import { createConfusionFace } from "./calibration_confusion.js";
import { createReliabilityFace } from "./calibration_reliability.js";
import { createSetsFace } from "./calibration_sets.js";
import { createFaces } from "./faces.js";
import { createFrame, createSwitch } from "./frame.js";
import { hints } from "./help.js";

const FACES = [
  ["reliability", "reliability", "Is the confidence justified?", createReliabilityFace],
  ["confusion", "confusion", "Which classes are taken for which?", createConfusionFace],
  [
    "regions",
    "regions",
    "Is the mean confidence of each region justified? It is right from an IoU of 0.5",
    createReliabilityFace,
  ],
  ["sets", "sets", "Sets of classes that hold the true one with a chosen probability", createSetsFace],
];

/** Reliability, confusion and sets, each a face of one section. */
export function createSection(el, app) {
  const frame = createFrame({ name: "calibration", title: "Calibration", hint: hints.calibration });
  el.append(frame.el);
  const scope = createSwitch(
    "Scope",
    [
      ["element", "here", "At the current position; sets: calibrated on untransformed inputs"],
      ["orbit", "whole orbit", "All positions pooled; sets: calibrated on all positions"],
    ],
    (value) => app.select({ scope: value }),
  );
  frame.controls.append(scope.el);

  function title() {
    const { scope: where, answers } = app.store.get();
    const here = `at ${app.group.names[app.place().element]}`;
    scope.set(
      where,
      answers === "sets"
        ? { element: "calibrated at the identity", orbit: "calibrated on the orbit" }
        : { element: here, orbit: "whole orbit" },
    );
    show(scope.el, answers !== "confusion"); // counts are those of one position
  }

  const offered = FACES.filter(([name]) => app.state.answers.includes(name));
  if (app.state.answers.includes("regions")) offered[0] = ["reliability", "pixels", ...FACES[0].slice(2)];
  const faces = createFaces(frame, app, "answers", "Answers", offered);
  const stop = app.store.subscribe(["scope", "element", "answers"], title);
  title();
  return {
    focus: () => frame.controls.querySelector("input:checked").focus(),
    destroy: () => (stop(), faces.destroy()),
  };
}
