// How the samples differ at each position: a fan of quantiles, or a map of one of them, and the
// samples behind each band.

import { button, fill, h, modelLabel, write } from "../core/dom.js";
import { counted } from "../core/text.js";
import { fixed, formatter, precise, shortened } from "../draw/format.js";
import { BANDS, bandEnd, bandOf, bandWords, quantileRows } from "../draw/quantiles.js";
import { createOrbitPlot } from "../plots/orbit.js";
import { createSelect, drawable } from "./frame.js";

const FANS = ["circle", "line"]; // elsewhere color shows one number for each position
const WIDE = 64; // of a map that is read
const QUANTILES = { 5: "5 %", 25: "25 %", 50: "median", 75: "75 %", 95: "95 %" };

/** The quantiles of a metric over the subset. */
export function createSpread(el, app, frame) {
  const fan = FANS.includes(app.group.kind);
  const plotEl = el.appendChild(h("div", { class: "plot-holder" }));
  const plot = createOrbitPlot(plotEl, app.group);
  const quantile = createSelect("map of the", (value) => app.select({ quantile: value }), { quiet: true });
  const corner = h("th", { scope: "col" });
  const rows = h("tbody", {});
  const table = h(
    "table",
    { "aria-label": "Samples behind each band, at this position" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        corner,
        ...BANDS.map(({ name, short }) => h("th", { scope: "col", title: `The ${name} of the samples` }, short)),
      ),
    ),
    rows,
  );
  const note = h("p", { class: "view-note" });
  const offer = button("", () => app.sets.choose({ band: offered() }), { class: "tool offer" });
  el.append(
    offer,
    h("div", { class: "bands" }, table),
    h("div", { class: "spread-foot" }, fan ? null : quantile.el, note),
  );
  let answer = null;
  let pointed = null;

  /** The quantiles that have room side by side, a map of each for every model; none where fewer than three have. */
  function levelsFor(width) {
    const room = width / (WIDE * (["slices", "ball"].includes(app.group.kind) ? 3 : 1));
    return room >= 7 ? ["5", "25", "50", "75", "95"] : room >= 4 ? ["5", "50", "95"] : [];
  }

  function draw() {
    if (!drawable(frame, answer, !answer?.count && app.nothing())) return;
    const metric = app.metricNamed(answer.metric);
    const levels = fan || app.store.get().quantile ? [] : levelsFor(plotEl.clientWidth);
    // Where there is no room for several maps, that of the tail that is worse.
    const chosen = app.store.get().quantile || (metric.higher_is_better === false ? "95" : "5");
    frame.note(`spread over ${counted(answer.count, app.state.samples, app.noun)}`);
    const [low, first, median, third, high] = quantileRows(answer.arrays.quantiles);
    const maps = { 5: low, 25: first, 50: median, 75: third, 95: high };
    const part = chosen === "50" ? "median" : `${chosen} % of samples below`;
    plot.set({
      models: app.shown(answer.models),
      values: fan || levels.length ? median : maps[chosen],
      ...(fan ? { low, high, inner: [first, third] } : {}),
      levels: levels.length ? levels.map((key) => ({ name: QUANTILES[key], values: maps[key] })) : null,
      range: answer.range,
      rounding: metric.rounding,
      higherIsBetter: metric.higher_is_better,
      title: fan || levels.length ? metric.title : `${metric.title}, ${part}`,
      format: metric.unit,
    });
    quantile.set([["", "quantiles"], ...Object.entries(QUANTILES)], levels.length ? "" : chosen);
    const instead =
      answer.metric === app.metric().name ? "" : `${app.metric().title} has no spread: ${metric.title} is shown.`;
    write(note, instead);
    mark();
  }

  /** The band of a value at an element, of the model whose fan is nearest. */
  function bandAt(element, value) {
    const found = Number.isFinite(value) ? bandOf(answer.arrays.quantiles, element, value) : null;
    return found && { model: answer.models[found.m], band: found.band };
  }

  /** The band whose samples one button selects: where the plot was clicked, else the worst tail here. */
  function offered() {
    const worst = Number(app.metricNamed(answer.metric).higher_is_better === false);
    return pointed ?? bandAt(app.place().element, answer.range[worst]);
  }

  /** The ends of the bands here; each is a button that shows only the samples in it. */
  function tell() {
    if (!answer?.arrays?.quantiles || answer.error) return;
    const { element } = app.place();
    const near = offered();
    offer.disabled = !near;
    write(
      offer,
      near ? `Select these ${app.noun}: ${shortened(near.model, 14)}, ${BANDS[near.band].name}` : "No values",
    );
    const quantiles = quantileRows(answer.arrays.quantiles);
    const size = answer.arrays.quantiles.shape[2];
    const { unit } = app.metricNamed(answer.metric);
    const formats = {
      brief: unit === "share" ? (value) => fixed(value, 2) : formatter(unit, answer.range),
      exact: precise(unit),
    };
    write(corner, `at ${app.group.names[element]}`);
    const made = app.shown(answer.models).map((model, m) => {
      const ends = quantiles.map((values) => values[m * size + element]);
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, ...modelLabel(model, 12)),
        ...BANDS.map((_, b) =>
          cell(model, b, ends, { ...formats, here: near?.model === model.name && near.band === b }),
        ),
      );
    });
    fill(rows, made);
  }

  function cell(model, band, ends, { brief, exact, here }) {
    const words = bandEnd(band, ends, brief);
    const known = ends.every(Number.isFinite);
    const label = `${model.name}, ${BANDS[band].name}: ${bandWords(band, ends, exact)}`;
    const press = () => app.sets.choose({ band: { model: model.name, band } });
    const attributes = {
      type: "button",
      class: here ? "band pointed" : "band",
      title: `${label}. Click to show only these ${app.noun}.`,
      "aria-label": label,
    };
    return h("td", {}, known ? h("button", { ...attributes, onclick: press }, words) : "–");
  }

  /** Point at the band under the pointer; with Shift, select its samples at once. */
  function point({ element, value, shift }) {
    pointed = bandAt(element, value);
    tell();
    if (pointed && shift) app.sets.choose({ band: pointed });
  }

  function mark() {
    const { element, position } = app.place();
    plot.mark(element, position);
    tell();
  }

  plot.onpress(point);
  plot.onmove((move) => {
    app.move(move);
    tell();
  });
  const stops = [
    app.on("spread", (given) => ((answer = given), (pointed = null), draw())),
    app.store.subscribe(["quantile"], draw),
    app.store.subscribe(["stage"], () => requestAnimationFrame(draw)), // with more room, more maps
    app.store.subscribe(["element", "position"], mark),
    app.theme.on(draw),
  ];
  return { focus: () => plot.focus(), destroy: () => (stops.forEach((stop) => stop()), plot.destroy()) };
}
