// Predictions with their intervals, and the parts of their variance: aleatoric and epistemic.
//
// Few components stand in rows, a whisker for each model; many, as of a spectrum, are curves with bands.

import { fill, h, write } from "../core/dom.js";
import { fixed, short } from "../draw/format.js";
import { linear, ticks } from "../draw/scales.js";
import { INK, LINE, PANEL, SOFT, label, node, polyline, stroke } from "../draw/svg.js";

/** @import { ViewContent } from "./index.js" */

const MOST_ROWS = 12;
const NARROWEST = 200;
const BESIDE = 400; // the width from which the variance stands beside the predictions
const LEFT = 26;
const MARGIN = 8;
const TOP = 16;
const LANE = 10; // of one model in a row
const GAP = 5;
const CURVES = 70;

/** The numbers of one field for a model: one for each component, a shared one repeated. */
function spread(field, model, models, width) {
  if (!field) return null;
  const size = field.data.length / models;
  const own = Array.from(field.data.slice(model * size, (model + 1) * size), Number);
  return own.length === width
    ? own
    : Array.from({ length: width }, (_, c) => own[Math.floor((c * own.length) / width)]);
}

/** What each model says: mean, deviation and the parts of the variance, by component. */
export function answersOf(fields, models) {
  if (!fields.mean) return [];
  const width = fields.mean.data.length / models.length;
  return models.map((name, m) => {
    const read = (field) => spread(field, m, models.length, width);
    const variance = read(fields.variance);
    return {
      name,
      mean: read(fields.mean),
      deviation: variance && variance.map((value) => Math.sqrt(value)),
      aleatoric: read(fields.aleatoric),
      epistemic: read(fields.epistemic),
    };
  });
}

/** The range that holds all means with two deviations, and the truth. */
export function reach(answers, truth) {
  const seen = [...(truth ?? [])];
  for (const { mean, deviation } of answers) {
    mean.forEach((value, c) => {
      const sigma = deviation && Number.isFinite(deviation[c]) ? 2 * deviation[c] : 0;
      seen.push(value - sigma, value + sigma);
    });
  }
  const finite = seen.filter(Number.isFinite);
  if (!finite.length) return [0, 1];
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const margin = (high - low || Math.abs(high) || 1) * 0.05;
  return [low - margin, high + margin];
}

/** The variance of a model's component in parts that stack; one part where they are not told apart. */
export function partsOf({ deviation, aleatoric, epistemic }, c) {
  if (aleatoric && epistemic && Number.isFinite(aleatoric[c]))
    return [
      { part: "aleatoric", value: aleatoric[c] },
      { part: "epistemic", value: epistemic[c] },
    ];
  return deviation && Number.isFinite(deviation[c]) ? [{ part: "variance", value: deviation[c] ** 2 }] : [];
}

/** All answers in one sentence, for those who do not see the picture. */
export function sentenceOf(answers, truth) {
  const parts = answers.map(({ name, mean, deviation }) => {
    const shown = mean.slice(0, 3).map((value, c) => `${short(value)}${deviation ? ` ± ${short(deviation[c])}` : ""}`);
    return `${name}: ${shown.join(", ")}${mean.length > 3 ? " …" : ""}`;
  });
  return parts.join("; ") + (truth ? `; truth ${truth.slice(0, 3).map(short).join(", ")}` : "");
}

function axis(scale, y, top) {
  const [low, high] = scale.domain;
  return ticks(low, high, 4).flatMap((value) => [
    stroke(scale(value), top, scale(value), y, { stroke: LINE }),
    label(scale(value), y + 9, short(value)),
  ]);
}

function whisker(x, y, mean, deviation, color) {
  const parts = [];
  if (Number.isFinite(deviation)) {
    parts.push(stroke(x(mean - 2 * deviation), y, x(mean + 2 * deviation), y, { stroke: color, "stroke-width": 1.2 }));
    parts.push(stroke(x(mean - deviation), y, x(mean + deviation), y, { stroke: color, "stroke-width": 3.5 }));
  }
  parts.push(node("circle", { cx: x(mean), cy: y, r: 2.5, fill: PANEL, stroke: color, "stroke-width": 1.6 }));
  return parts;
}

function stacked(x, y, parts, color) {
  let from = 0;
  return parts.map(({ part, value }) => {
    const bar = node("rect", {
      x: x(from),
      y: y - 3.5,
      width: Math.max(0, x(from + value) - x(from)),
      height: 7,
      fill: color,
      "fill-opacity": part === "epistemic" ? 0.35 : 0.9,
    });
    bar.append(node("title", {}, `${part} ${short(value)}`));
    from += value;
    return bar;
  });
}

function heading(x, y, words) {
  return label(x, y, words, { "text-anchor": "start", fill: INK });
}

/** Rows of one kind: the axis, the numbers of the components, and what `draw` puts in each lane. */
function lanes(answers, x, top, title, draw) {
  const row = answers.length * LANE + GAP;
  const count = answers[0].mean.length;
  const bottom = top + TOP + count * row;
  const start = x.range[0];
  const drawn = [heading(start, top + 8, title), ...axis(x, bottom, top + TOP)];
  for (let c = 0; c < count; c += 1) {
    const from = top + TOP + c * row + GAP / 2;
    drawn.push(label(start - 8, from + (answers.length * LANE) / 2, c, { "text-anchor": "end" }));
    drawn.push(...draw(c, (m) => from + (m + 0.5) * LANE, from - 1, from + row - GAP + 1));
  }
  return { drawn, bottom: bottom + 15 };
}

/** Rows: a whisker for each model of each component, and bars of the parts of its variance. */
function drawRows(answers, colors, truth, width) {
  const right = width >= BESIDE ? 0.64 * width : width;
  const x = linear(reach(answers, truth), [LEFT, right - MARGIN]);
  const above = lanes(answers, x, 0, "prediction", (c, place, from, to) => [
    ...(truth && Number.isFinite(truth[c])
      ? [stroke(x(truth[c]), from, x(truth[c]), to, { stroke: INK, "stroke-width": 2 })]
      : []),
    ...answers.flatMap((one, m) =>
      Number.isFinite(one.mean[c]) ? whisker(x, place(m), one.mean[c], one.deviation?.[c], colors[m]) : [],
    ),
  ]);
  const sums = answers.flatMap((one) =>
    one.mean.map((_, c) => partsOf(one, c).reduce((sum, { value }) => sum + value, 0)),
  );
  const largest = Math.max(...sums);
  if (!(largest > 0)) return { drawn: above.drawn, height: above.bottom };
  const beside = right < width;
  const v = linear([0, largest], beside ? [right + LEFT - 6, width - MARGIN] : [LEFT, width - MARGIN]);
  const below = lanes(answers, v, beside ? 0 : above.bottom, "variance", (c, place) =>
    answers.flatMap((one, m) => stacked(v, place(m), partsOf(one, c), colors[m])),
  );
  return { drawn: [...above.drawn, ...below.drawn], height: below.bottom };
}

function band(x, y, one, color) {
  const upper = one.mean.map((value, c) => [x(c), y(value + 2 * one.deviation[c])]);
  const lower = one.mean.map((value, c) => [x(c), y(value - 2 * one.deviation[c])]).reverse();
  return node("path", { d: polyline([...upper, ...lower], true), fill: color, "fill-opacity": 0.18, stroke: "none" });
}

function curve(x, y, values, color, attributes = {}) {
  const d = polyline(values.map((value, c) => [x(c), y(value)]));
  return node("path", { d, fill: "none", stroke: color, "stroke-width": 1.4, ...attributes });
}

/** Curves over the components: above the predictions in their bands, below the parts of the variance. */
function drawCurves(answers, colors, truth, width) {
  const last = answers[0].mean.length - 1;
  const right = width - MARGIN;
  const x = linear([0, last], [LEFT + 10, right]);
  const y = linear(reach(answers, truth), [TOP + CURVES, TOP]);
  const drawn = [heading(LEFT, 8, "prediction by component")];
  const side = (scale) =>
    ticks(...scale.domain, 4).flatMap((value) => [
      stroke(LEFT + 10, scale(value), right, scale(value)),
      label(LEFT + 6, scale(value), short(value), { "text-anchor": "end" }),
    ]);
  drawn.push(...side(y));
  answers.forEach((one, m) => one.deviation && drawn.push(band(x, y, one, colors[m])));
  if (truth) drawn.push(curve(x, y, truth, INK, { "stroke-width": 1, "stroke-dasharray": "4 2" }));
  answers.forEach((one, m) => drawn.push(curve(x, y, one.mean, colors[m])));
  const parts = answers.map((one) => one.mean.map((_, c) => partsOf(one, c)));
  const largest = Math.max(0, ...parts.flat(2).map(({ value }) => value));
  let bottom = TOP + CURVES;
  if (largest > 0) {
    const start = bottom + 24;
    bottom = start + 0.7 * CURVES;
    const v = linear([0, largest], [bottom, start]);
    const apart = parts.some((each) => each.some((here) => here.length > 1));
    drawn.push(heading(LEFT, start - 10, "variance by component"), ...side(v));
    answers.forEach((_, m) => {
      (apart ? [0, 1] : [0]).forEach((place) => {
        const values = parts[m].map((here) => here[place]?.value ?? NaN);
        drawn.push(curve(x, v, values, colors[m], place ? { "stroke-dasharray": "2 2" } : {}));
      });
    });
  }
  for (const value of ticks(0, last, 5)) drawn.push(label(x(value), bottom + 9, value));
  return { drawn, height: bottom + 18 };
}

/** The view. */
export function createView(el) {
  const picture = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "intervals" });
  const note = h("p", { class: "view-note" });
  el.append(picture, note);

  function set(/** @type {ViewContent} */ { fields, truths = {}, models, colors }) {
    const answers = answersOf(fields, models);
    if (!answers.length) {
      fill(picture);
      return write(note, "No predictions stored at this position.");
    }
    const known = truths.moved ?? truths.still;
    const truth = known ? Array.from(known.data, Number) : null;
    const many = answers[0].mean.length > MOST_ROWS;
    const width = Math.max(NARROWEST, picture.clientWidth);
    const { drawn, height } = (many ? drawCurves : drawRows)(answers, colors, truth, width);
    const words = sentenceOf(answers, truth);
    const svg = node(
      "svg",
      { viewBox: `0 0 ${width} ${fixed(height, 0)}`, width: "100%", role: "img", "aria-label": words, fill: SOFT },
      ...drawn,
    );
    fill(picture, svg);
    write(note, meaning(answers, many, Boolean(truth)));
  }

  return { set, destroy: () => el.replaceChildren() };
}

/** What the marks mean, as far as they are there. */
export function meaning(answers, many, labeled) {
  const sure = answers.some(({ deviation }) => deviation?.some(Number.isFinite));
  const apart = answers.some((one) => one.mean.some((_, c) => partsOf(one, c).length > 1));
  const said = [];
  if (sure) said.push(many ? "band: 2 σ" : "lines: 1 and 2 σ");
  if (labeled) said.push(many ? "dashed: truth" : "black: truth");
  if (apart) said.push(many ? "solid: aleatoric; dotted: epistemic" : "dark: aleatoric; light: epistemic");
  return said.join("; ");
}
