// Can the confidence be trusted, for the subset, here or over the whole orbit?

import { fill, h, swatch } from "../core/dom.js";
import { counted } from "../core/text.js";
import { fixed } from "../draw/format.js";
import { createCumulative } from "../plots/cumulative.js";
import { createReliability } from "../plots/reliability.js";
import { createFrame, createSwitch } from "./frame.js";
import { hints } from "./words.js";

/** Reliability diagram, cumulative curve, and the errors with their intervals. */
export function createSection(el, app) {
  const frame = createFrame({ name: "calibration", title: "Calibration", hint: hints.calibration });
  el.append(frame.el);
  const scope = createSwitch("Where", [["element", "here", "At the current position"], ["orbit", "whole orbit", "Over all positions"]], (value) => app.select({ scope: value }));
  frame.controls.append(scope.el);
  const reliabilityEl = h("div", { class: "plot-holder" });
  const cumulativeEl = h("div", { class: "plot-holder" });
  const table = h("table", { class: "measures" });
  frame.body.append(reliabilityEl, cumulativeEl, h("div", { class: "measures-holder" }, table));
  const reliability = createReliability(reliabilityEl);
  const cumulative = createCumulative(cumulativeEl);
  let answer = null;

  function draw() {
    if (!answer) return;
    if (answer.error) return frame.state("error", answer.error);
    if (answer.available === false || !answer.arrays.edges) return frame.state("empty", answer.reason ?? "This task has no confidence to check.");
    if (!answer.count) return frame.state("empty", `No ${app.noun} in this subset.`);
    frame.state("ready");
    const { edges, count, confidence, accuracy, ...rest } = answer.arrays;
    const models = app.shown(answer.models);
    const plain = (array) => array.data;
    reliability.set({ models, edges: plain(edges), count: plain(count), confidence: plain(confidence), accuracy: plain(accuracy), measures: [], legend: false });
    if (rest.cumulative_x) {
      cumulative.set({ models, x: plain(rest.cumulative_x), confidence: plain(rest.cumulative_confidence), accuracy: plain(rest.cumulative_accuracy), legend: false });
    }
    measure(models);
    title();
  }

  /** One row per model and measure: value, interval, and what chance alone would give. */
  function measure(models) {
    const head = h("tr", {}, ["", "ECE", "95 % interval", "if calibrated"].map((text, i) => h("th", { scope: "col", title: i === 3 ? "The ECE that a perfectly calibrated model would show with as many samples" : null }, text)));
    const rows = models.map((model) => {
      const one = answer.measures.find((found) => found.model === model.name && found.name === "ece") ?? {};
      const number = (value) => (value === null || value === undefined ? "–" : fixed(value, 3));
      const interval = one.low === null || one.low === undefined ? "–" : `${fixed(one.low, 3)} – ${fixed(one.high, 3)}`;
      return h("tr", {}, h("th", { scope: "row" }, swatch(model), model.name), h("td", { class: "strong" }, number(one.value)), h("td", {}, interval), h("td", {}, number(one.expected)));
    });
    fill(table, h("caption", { class: "hidden" }, "Calibration error per model"), h("thead", {}, head), h("tbody", {}, rows));
  }

  function title() {
    const { scope: where } = app.store.get();
    const { element } = app.place();
    scope.set(where, { element: `at ${app.group.names[element]}` });
    if (answer?.count) frame.note(counted(answer.count, app.state.samples, app.noun) + (where === "orbit" ? ", all positions" : ""));
  }

  const stops = [
    app.on("calibration", (given) => ((answer = given), draw())),
    app.store.subscribe(["scope", "element"], title),
  ];
  title();
  return {
    focus: () => scope.el.querySelector("input:checked").focus(),
    update: draw,
    destroy: () => (stops.forEach((stop) => stop()), reliability.destroy(), cumulative.destroy()),
  };
}
