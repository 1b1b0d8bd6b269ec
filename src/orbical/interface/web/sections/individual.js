// The selected sample's own orbit plot: press and drag along it.

import { button, h } from "../core/dom.js";
import { className, singular } from "../core/text.js";
import { holding } from "../draw/scales.js";
import { createOrbitPlot } from "../plots/orbit.js";
import { confusion } from "./confusion.js";
import { createFrame } from "./frame.js";
import { hintFor, hints } from "./help_text.js";
import { createWorstCase } from "./worst_case.js";

/** The orbit of one sample, for every model. */
export function createSection(el, app) {
  const frame = createFrame({
    name: "individual",
    title: "Individual",
    hint: hintFor(hints.individual, app.group.kind),
  });
  el.append(frame.el);
  const dense = h("input", { type: "checkbox", onchange: () => app.select({ dense: dense.checked }) });
  if (app.state.live && app.state.group.continuous) {
    frame.controls.append(
      h("label", { class: "check", title: "Run the models at finer steps for this sample" }, dense, "fine steps"),
    );
  }
  const pin = button("pin", () => app.pin(), {
    class: "tool",
    title: `Keep this ${singular(app.noun)} beside others  p`,
  });
  frame.controls.append(pin);
  const plotEl = frame.body.appendChild(h("div", { class: "plot-holder" }));
  const worst = createWorstCase(app, draw);
  frame.body.append(worst.el);
  let plot = createOrbitPlot(plotEl, app.group);
  let spec = "";
  let answer = null;

  function wire() {
    plot.onmove((move) => app.move(answer?.group ? app.coarse(move, answer.group) : move));
  }

  /** Finer steps are another group: the plot is made anew for it. */
  function follow() {
    const wanted = answer.group ? answer.group.spec : "";
    if (wanted === spec) return;
    spec = wanted;
    plot.destroy();
    plotEl.replaceChildren();
    plot = createOrbitPlot(plotEl, answer.group ? app.groupOf(answer) : app.group);
    wire();
  }

  function draw() {
    if (!answer) return;
    if (answer.error) return frame.state("error", answer.error);
    follow();
    const metric = app.sampleMetric();
    frame.state("ready");
    const said = confusion(answer, app.byConsensus(), (c) => className(app.state, c));
    const steps = answer.group ? ", finer steps" : dense.checked ? "; too many positions for finer steps" : "";
    frame.note(said || `along the orbit${steps}`);
    const models = app.shown(answer.models);
    const marks = worst.of(models, metric, (sample) => sample === answer.sample);
    plot.set({
      models,
      marks,
      values: answer.arrays.values.data,
      range: holding(answer.range ?? [metric.low, metric.high], marks),
      higherIsBetter: metric.higher_is_better,
      title: metric.title,
      format: metric.unit,
    });
    mark();
  }

  function mark() {
    const { element, position } = app.place();
    plot.mark(answer?.group ? app.fine(answer.group) : element, position);
  }

  function pressed() {
    const { pins, sample } = app.store.get();
    pin.setAttribute("aria-pressed", String(pins.includes(sample)));
  }

  wire();
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
    focus: () => plot.focus(),
    destroy: () => (stops.forEach((stop) => stop()), worst.destroy(), plot.destroy()),
  };
}
