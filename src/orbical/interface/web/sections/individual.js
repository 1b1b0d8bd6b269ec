// What a sample is taken for along its orbit, in a sentence.
import { button, fill, h } from "../core/dom.js";
import { className, EQUAL, singular } from "../core/text.js";
import { shortened } from "../draw/format.js";
import { anyFinite, holding, onlyRounding } from "../draw/scales.js";
import { createOrbitPlot } from "../plots/orbit.js";
import { createFrame, drawable } from "./frame.js";
import { hintFor, hints } from "./help.js";
import { createScale } from "./faces.js";
import { createProgress } from "./progress.js";
import { createWorstCase } from "./worst_case.js";

/**
 * The wrong answer given most often: `{ model, answer, count }`, null where all are right; `predicted` is
 * [models, elements], `expected` the right class of each model.
 */
function mostConfused({ data, shape }, expected) {
  const [models, elements] = shape;
  let most = null;
  for (let m = 0; m < models; m += 1) {
    const counts = new Map();
    for (const answer of data.subarray(m * elements, (m + 1) * elements)) {
      if (answer !== expected[m] && answer >= 0) counts.set(answer, (counts.get(answer) ?? 0) + 1);
    }
    for (const [answer, count] of counts) if (count > (most?.count ?? 0)) most = { model: m, answer, count };
  }
  return most;
}

/** The sentence: "plain predicts 9 at 43 of 72 positions"; empty where nothing is known. */
export function confusion({ models, label, consensus, arrays }, byConsensus, nameOf) {
  const predicted = arrays?.predicted;
  if (!predicted) return "";
  const expected = models.map((_, m) => (byConsensus ? consensus[m] : label));
  if (expected.some((one) => one === null || one === undefined)) return "";
  const elements = predicted.shape[1];
  if (!predicted.data.some((answer) => answer >= 0)) return ""; // not finished
  const most = mostConfused(predicted, expected);
  if (!most) return `correct at all ${elements} positions`;
  return `${shortened(models[most.model], 18)} predicts ${nameOf(most.answer)} at ${most.count} of ${elements} positions`;
}

/** The orbit of one sample, for every model. */
export function createSection(el, app) {
  const truthName = app.state.task.truth_name === "label" ? "label" : "truth";
  const finer = app.state.live && app.state.group.continuous;
  const frame = createFrame({
    name: "individual",
    title: "Individual",
    hint: hintFor(finer && app.state.report ? hints.individual_in_report : hints.individual, app.group.kind),
  });
  el.append(frame.el);
  const dense = h("input", { type: "checkbox", onchange: () => app.select({ dense: dense.checked }) });
  if (finer && !app.state.report) {
    frame.controls.append(
      h("label", { class: "check", title: "Run the models at finer steps for this sample" }, dense, "fine steps"),
    );
  }
  if (app.group.kind === "circle") {
    const change = () => app.select({ shape: straight.checked ? "line" : "circle" });
    const straight = h("input", { type: "checkbox", onchange: change });
    straight.checked = app.group.straight;
    frame.controls.append(
      h("label", { class: "check", title: "Draw circles as straight lines" }, straight, "straight"),
    );
  }
  const pin = button("pin", () => app.pin(), {
    class: "tool",
    title: `Keep this ${singular(app.noun)} beside others  p`,
  });
  frame.controls.append(pin);
  const row = frame.body.appendChild(h("div", { class: "references" }));
  const worst = createWorstCase(app, draw);
  const working = createProgress(
    app,
    "sample",
    () => "Finer steps …",
    (given) => given.stopped && app.select({ dense: false }),
  );
  const scale = createScale(app, () => draw());
  frame.body.append(scale.el, worst.el, working.el);
  let plots = [];
  let made = "";
  let answer = null;
  follow();

  /** One plot, or one for each reference; finer steps are another group, for which they are made anew. */
  function follow() {
    const names = answer?.arrays?.consensus_values ? [truthName, "consensus"] : [""];
    const wanted = JSON.stringify([names, answer?.group?.spec]);
    if (wanted === made) return;
    made = wanted;
    plots.forEach((plot) => plot.destroy());
    const holders = names.map(() => h("div", { class: "plot-holder" }));
    fill(
      row,
      names.map((name, n) =>
        h(
          "div",
          { class: "reference" },
          name ? h("p", { class: "against" }, `compared with ${name}`) : null,
          holders[n],
        ),
      ),
    );
    plots = holders.map((holder) => createOrbitPlot(holder, answer?.group ? app.groupOf(answer) : app.group));
    for (const plot of plots) plot.onmove((move) => app.move(answer?.group ? app.coarse(move, answer.group) : move));
  }

  function draw() {
    if (!drawable(frame, answer, failed(answer))) return;
    follow();
    const metric = app.sampleMetric();
    const said = confusion(answer, app.byConsensus(), (c) => className(app.state, c));
    const steps = answer.group ? ", finer steps" : dense.checked ? "; too many positions for finer steps" : "";
    const same = onlyRounding(answer.arrays.values.data, metric.rounding) ? ` · ${EQUAL}` : "";
    frame.note(said || `along the orbit${steps}${same}`);
    const models = app.shown(answer.models);
    const marks = worst.of(models, metric, (sample) => sample === answer.sample);
    const whole = holding(answer.range ?? [metric.low, metric.high], marks);
    const every = [answer.arrays.values, answer.arrays.consensus_values].flatMap((one) => Array.from(one?.data ?? []));
    const range = scale.of(every, whole);
    const fixed = metric.low !== null && metric.high !== null; // the same colors for every sample
    const { unit: format, rounding, higher_is_better: higherIsBetter } = metric;
    const common = { models, range, fixed, higherIsBetter, format, rounding };
    const { values, consensus_values: other } = answer.arrays;
    plots[0].set({ ...common, marks, values: values.data, title: metric.title });
    if (other) plots[1].set({ ...common, values: other.data, title: app.againstConsensus(metric).title });
    mark();
  }

  /** What each model raised, where none has a result. */
  function failed(given) {
    const none = given?.failed && !anyFinite(given.arrays.values.data);
    return (
      none &&
      Object.entries(given.failed)
        .map(([model, error]) => `${model} failed: ${error}`)
        .join("; ")
    );
  }

  function mark() {
    const { element, position } = app.place();
    for (const plot of plots) plot.mark(answer?.group ? app.fine(answer.group) : element, position);
  }

  function pressed() {
    const { pins, sample } = app.store.get();
    pin.setAttribute("aria-pressed", String(pins.includes(sample)));
  }

  pressed();
  const stops = [
    app.on("sample", (given) => ((answer = given), draw())),
    app.store.subscribe(["element", "position"], mark),
    app.store.subscribe(["dense"], ({ dense: on }) => (dense.checked = on)),
    app.store.subscribe(["pins", "sample"], pressed),
    app.theme.on(draw),
  ];
  dense.checked = app.store.get().dense;
  return {
    focus: () => plots[0].focus(),
    destroy: () => (
      stops.forEach((stop) => stop()),
      working.destroy(),
      worst.destroy(),
      scale.destroy(),
      plots.forEach((plot) => plot.destroy())
    ),
  };
}
