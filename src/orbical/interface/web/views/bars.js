// Probabilities of classes, or of several labels, of all models side by side; truth and consensus marked.

import { h, show, write } from "../core/dom.js";
import { fixed, keep } from "../draw/format.js";

/** @import { ViewContent } from "./index.js" */

const MOST = 12;
const MANY = 3; // models whose bars stand close together
const FAINT = 0.02; // a consensus below this would only blur the axis

/** The classes to show: all where few, else the likeliest of any model, with the truth; none that no model considers. */
export function shownClasses(data, models, classes, truths) {
  if (classes <= MOST) return Array.from({ length: classes }, (_, c) => c);
  const best = Array.from({ length: classes }, (_, c) => {
    let largest = 0;
    for (let m = 0; m < models; m += 1) largest = Math.max(largest, data[m * classes + c]);
    return [largest + (truths.includes(c) ? 2 : 0), c];
  });
  best.sort((a, b) => b[0] - a[0]);
  return best
    .filter(([largest]) => largest > 0)
    .slice(0, MOST)
    .map(([, c]) => c)
    .sort((a, b) => a - b);
}

/** What all models answer, in one sentence. */
export function sentenceOf(models, predicted, confidence, name, truth) {
  const parts = models.map((model, m) => `${model}: ${name(predicted[m])} at ${fixed(confidence[m], 2)}`);
  return parts.join("; ") + (truth === null ? "" : `; true class ${name(truth)}`);
}

/** The labels that each of the models finds, in one sentence. */
export function labelsOf(models, data, labels, threshold, name, truths) {
  const listed = (found) => found.map(name).join(", ") || "none";
  const parts = models.map((model, m) => {
    const found = Array.from({ length: labels }, (_, c) => c).filter((c) => data[m * labels + c] >= threshold);
    return `${model}: ${listed(found)}`;
  });
  return [...parts, ...(truths ? [`true labels: ${listed(truths)}`] : [])].join("; ");
}

/** The true classes: one, or the labels that apply; null where they are not known. */
export function trueClasses(truth, truths, classes) {
  if (truth !== null) return [truth];
  const given = Object.values(truths).find(({ data }) => data.length === classes);
  return given ? Array.from({ length: classes }, (_, c) => c).filter((c) => given.data[c] > 0.5) : null;
}

/** The winning class of each model and its probability. */
export function winners(data, models, classes) {
  const predicted = new Int32Array(models);
  const confidence = new Float32Array(models);
  for (let m = 0; m < models; m += 1) {
    for (let c = 0; c < classes; c += 1) {
      const value = data[m * classes + c];
      if (value > confidence[m]) [predicted[m], confidence[m]] = [c, value];
    }
  }
  return { predicted, confidence };
}

/** The view. Without probabilities: the predicted class and its confidence, and a note. */
export function createView(el, state) {
  const name = (c) => String(state.classes[c] ?? state.task?.classes?.[c] ?? c);
  const several = (state.task?.threshold ?? null) !== null; // labels that apply or not, each by itself
  const chart = h("div", { class: "bars", role: "img" });
  const axis = h(
    "div",
    { class: "bars-axis", "aria-hidden": "true" },
    ["0", "0.5", "1"].map((tick) => h("span", {}, tick)),
  );
  const meaning = h("p", { class: "bars-key" }, h("i", { class: "tick" }), "consensus over the orbit");
  const note = h("p", { class: "view-note" });
  el.append(note, chart, meaning);
  let key = "";
  let rows = [];

  function makeRow(c, colors) {
    const bars = colors.map((color) => {
      const bar = h("i", { class: "bar" });
      bar.style.background = color;
      const tick = h("i", { class: "tick", hidden: true });
      return { bar, tick, el: h("div", { class: "track" }, bar, tick) };
    });
    const mark = h("span", { class: "true-mark" }, "true");
    const row = h(
      "div",
      { class: "bar-row" },
      h("span", { class: "bar-name" }, name(c)),
      h("div", { class: "tracks" }, bars),
      mark,
    );
    return { c, bars, row, mark };
  }

  function set(/** @type {ViewContent} */ { fields, consensus = {}, truths = {}, models, colors, truth = null }) {
    const given = fields.probabilities;
    const found = given
      ? winners(given.data, models.length, given.shape[1])
      : { predicted: fields.predicted?.data ?? [], confidence: fields.confidence?.data ?? [] };
    // Where nobody lists the classes, there are at least those that are named.
    const named = [...found.predicted, truth ?? -1].map((c) => c + 1);
    const classes = given ? given.shape[1] : Math.max(state.classes.length, ...named);
    const data = given ? given.data : alone(found, models.length, classes);
    const average = Object.values(consensus).find((one) => one.shape.length === 2 && one.shape[1] === classes);
    show(meaning, Boolean(average));
    const applies = trueClasses(truth, truths, classes);
    const shown = shownClasses(data, models.length, classes, applies ?? []);
    const wanted = `${shown.join()}|${colors.join()}`;
    if (wanted !== key) {
      key = wanted;
      rows = shown.map((c) => makeRow(c, colors));
      chart.replaceChildren(...rows.map((one) => one.row), axis);
      chart.classList.toggle("many", colors.length > MANY);
      const least = Math.max(13, (colors.length > MANY ? 2 : 3) * colors.length + 4);
      chart.style.gridTemplateRows = `repeat(${rows.length}, minmax(${least}px, 1fr)) auto`;
    }
    for (const { c, bars, row, mark } of rows) {
      const right = applies?.includes(c) ?? false;
      row.classList.toggle("is-true", right);
      show(mark, right);
      const texts = bars.map(({ bar, tick }, m) => {
        const value = data[m * classes + c];
        bar.style.transform = `scaleX(${Number.isFinite(value) ? value : 0})`;
        const usual = average ? average.data[m * classes + c] : 0;
        show(tick, usual >= FAINT);
        tick.style.left = `${100 * usual}%`;
        return `${models[m]} ${fixed(value, 3)}`;
      });
      row.title = `${name(c)}: ${texts.join(", ")}`;
    }
    const spoken = several
      ? labelsOf(models, data, classes, state.task.threshold, name, applies)
      : sentenceOf(models, found.predicted, found.confidence, name, truth);
    chart.setAttribute("aria-label", spoken);
    write(
      note,
      given
        ? ""
        : `Only the predicted class is stored. To see all, pass the models or scan with ${keep(state, "probabilities")}.`,
    );
  }

  return { set, destroy: () => el.replaceChildren() };
}

/** Probabilities with the winning class alone. */
function alone({ predicted, confidence }, models, classes) {
  const data = new Float32Array(models * classes);
  for (let m = 0; m < models; m += 1) if (predicted[m] >= 0) data[m * classes + predicted[m]] = confidence[m];
  return data;
}
