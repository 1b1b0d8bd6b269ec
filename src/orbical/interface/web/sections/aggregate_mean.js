// How often the predictions of the subset change along the orbit, which a mean curve hides.
import { fill, h, modelLabel, write } from "../core/dom.js";
import { counted, EQUAL, whole } from "../core/text.js";
import { SEVERAL } from "../draw/colors.js";
import { fixed, precise } from "../draw/format.js";
import { holding, onlyRounding } from "../draw/scales.js";
import { createOrbitPlot } from "../plots/orbit.js";
import { drawable } from "./frame.js";
import { createLegend, createScale } from "./faces.js";
import { createWorstCase } from "./worst_case.js";

/** What is counted where an answer has many parts. */
const PARTS = { pixels: "pixel changes", points: "point changes", voxels: "voxel changes" };

const percent = (share) => fixed(100 * share, share > 0 && share < 0.095 ? 1 : 0);

/** A share with its interval, in percent. */
export function withInterval([share, low, high]) {
  if (!Number.isFinite(share)) return ["–", ""];
  const ends = Number.isFinite(low) ? ` (${percent(low)}–${percent(high)})` : "";
  return [`${percent(share)} %`, ends];
}

/** A table below the aggregate plot; nothing for tasks that do not say which answers are the same. Of several models it has the values too. */
export function createChanges(app) {
  const { consistency } = app.state;
  const here = app.state.models.length > SEVERAL ? h("th", { scope: "col" }) : null;
  let values = [];
  const what = PARTS[consistency] ? consistency : app.noun;
  const columns = [
    [
      "changed",
      PARTS[consistency] ?? "prediction changes",
      `The share of ${what} whose prediction is not the same at all positions`,
    ],
    ["pairs", "pairs disagree", "The share of pairs of positions whose predictions disagree"],
  ];
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, here ? "model" : "on the orbit"),
    here,
    columns.map(([, text, title]) => h("th", { scope: "col", title: `${title}, with its 95 % interval` }, text)),
  );
  const rows = h("tbody", {});
  const table = h("table", {}, h("thead", {}, head), rows);
  const el = h(
    "div",
    { class: "changes", role: "group", "aria-label": "Predictions that change", hidden: !consistency },
    table,
  );

  function cell(given, m) {
    const [share, ends] = withInterval(given?.data.subarray(3 * m, 3 * m + 3) ?? [NaN]);
    return h("td", {}, h("b", {}, share), " ", h("span", {}, ends.trim()));
  }

  /** The rows are there before their numbers, so that the plot above keeps its size. */
  function draw(answer) {
    const known = !answer.error && answer.count > 0 ? answer.arrays : {};
    const made = app.shown(answer.models).map((model, m) => {
      const title = h("th", { scope: "row" }, ...modelLabel(model, here ? 12 : 16));
      const cells = columns.map(([name]) => cell(known[name], m));
      return h("tr", {}, title, here && h("td", {}, h("b", {})), cells);
    });
    fill(rows, made);
    number();
  }

  function number() {
    if (here) [...rows.rows].forEach((row, m) => write(row.cells[1].firstChild, values[m] ?? ""));
  }

  function set(where, given) {
    values = given;
    if (here) write(here, where);
    number();
  }

  const stops = consistency ? [app.on("consistency", draw)] : [];
  if (consistency) draw({ models: [], count: 0 });
  return { el, set, destroy: () => stops.forEach((stop) => stop()) };
}

/** The mean of a metric, or a measure of the subset, with its interval. */
export function createMean(el, app, frame) {
  const plotEl = el.appendChild(h("div", { class: "plot-holder" }));
  const legend = createLegend();
  const changes = createChanges(app);
  const worst = createWorstCase(app, draw);
  const scale = createScale(app, () => draw());
  const caution = h("p", { class: "view-note caution" });
  el.append(scale.el, legend.el, caution, worst.el, changes.el);
  const plot = createOrbitPlot(plotEl, app.group);
  let answer = null;
  let hovered = null;
  let mask = null;

  function readout() {
    if (!answer?.arrays?.values) return;
    const element = hovered ?? app.element();
    const [models, count] = answer.arrays.values.shape;
    const values = Array.from({ length: models }, (_, m) => answer.arrays.values.data[m * count + element]);
    const [where, format] = [`at ${app.group.names[element]}`, precise(app.metric().unit)];
    legend.set(app.shown(answer.models), values, { where, format });
    changes.set(where, values.map(format));
  }

  function draw() {
    if (!drawable(frame, answer, !answer?.count && app.nothing())) return;
    const metric = app.metric();
    const same = onlyRounding(answer.arrays.values.data, metric.rounding) ? ` · ${EQUAL}` : "";
    const what = metric.per_sample ? "mean" : metric.title;
    const notes = [answer.note, answer.failed && `${whole(answer.failed)} failed`].filter(Boolean).join(", ");
    frame.note(`${what} of ${counted(answer.count, app.state.samples, app.noun)}${notes && `, ${notes}`}${same}`);
    const models = app.shown(answer.models);
    const said = answer.models.map((name) => answer.cautions?.[name]).find(Boolean);
    write(caution, said ? `Caution: ${said}.` : "");
    const marks = worst.of(models, metric, (sample) => !mask || mask[sample] > 0);
    plot.set({
      models,
      marks,
      values: answer.arrays.values.data,
      low: answer.arrays.low?.data,
      high: answer.arrays.high?.data,
      range: scale.of(answer.arrays.values.data, holding(answer.range, marks)),
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
    destroy: () => (
      stops.forEach((stop) => stop()),
      changes.destroy(),
      worst.destroy(),
      scale.destroy(),
      plot.destroy()
    ),
  };
}
