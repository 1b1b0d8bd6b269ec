// The metric over the orbit, averaged over the subset, for every model.

import { h } from "../core/dom.js";
import { EQUAL, counted } from "../core/text.js";
import { precise } from "../draw/format.js";
import { holding, onlyRounding } from "../draw/scales.js";
import { createOrbitPlot } from "../plots/orbit.js";
import { createChanges } from "./changes.js";
import { drawable } from "./frame.js";
import { createLegend } from "./legend.js";
import { createWorstCase } from "./worst_case.js";

/** The mean of a metric, or a measure of the subset, with its interval. */
export function createMean(el, app, frame) {
  const plotEl = el.appendChild(h("div", { class: "plot-holder" }));
  const legend = createLegend();
  const changes = createChanges(app);
  const worst = createWorstCase(app, draw);
  el.append(legend.el, worst.el, changes.el);
  const plot = createOrbitPlot(plotEl, app.group);
  let answer = null;
  let hovered = null;
  let mask = null;

  function readout() {
    if (!answer?.arrays?.values) return;
    const element = hovered ?? app.element();
    const [models, count] = answer.arrays.values.shape;
    const values = Array.from({ length: models }, (_, m) => answer.arrays.values.data[m * count + element]);
    legend.set(app.shown(answer.models), values, {
      where: `at ${app.group.names[element]}`,
      format: precise(app.metric().unit),
    });
  }

  function draw() {
    if (!drawable(frame, answer, !answer?.count && app.nothing())) return;
    const metric = app.metric();
    const same = onlyRounding(answer.arrays.values.data, metric.rounding) ? ` · ${EQUAL}` : "";
    const what = metric.per_sample ? "mean" : metric.title;
    frame.note(
      `${what} of ${counted(answer.count, app.state.samples, app.noun)}${answer.note ? `, ${answer.note}` : ""}${same}`,
    );
    const models = app.shown(answer.models);
    const marks = worst.of(models, metric, (sample) => !mask || mask[sample] > 0);
    plot.set({
      models,
      marks,
      values: answer.arrays.values.data,
      low: answer.arrays.low?.data,
      high: answer.arrays.high?.data,
      range: holding(answer.range, marks),
      rounding: metric.rounding,
      higherIsBetter: metric.higher_is_better,
      title: metric.title,
      format: metric.unit,
    });
    mark();
  }

  function mark() {
    const { element, position } = app.place();
    plot.mark(element, position);
    readout();
  }

  plot.onmove((move) => app.move(move));
  plot.onhover((place) => {
    hovered = place ? place.element : null;
    readout();
  });
  const stops = [
    app.on("aggregate", (given) => ((answer = given), draw())),
    app.on("subset", (given) => {
      mask = given.arrays?.mask?.data ?? null;
      if (app.state.worst) draw();
    }),
    app.store.subscribe(["element", "position"], mark),
    app.theme.on(draw),
  ];
  return {
    focus: () => plot.focus(),
    destroy: () => (stops.forEach((stop) => stop()), changes.destroy(), worst.destroy(), plot.destroy()),
  };
}
