// Can the confidence be trusted, for the subset, here or over the whole orbit?

import { fill, h, modelLabel } from "../core/dom.js";
import { counted, whole } from "../core/text.js";
import { fixed } from "../draw/format.js";
import { createCumulative } from "../plots/cumulative.js";
import { createReliability } from "../plots/reliability.js";
import { drawable } from "./frame.js";

const isNumber = (value) => value !== null && value !== undefined;
const number = (value) => (isNumber(value) ? fixed(value, 3) : "–");

const MEANINGS = {
  confidence: "Mean confidence",
  accuracy: "Fraction of correct predictions",
  ECE: "Expected calibration error: the mean absolute difference between confidence and accuracy, with its 95 % interval",
  "up to": "The upper end of the interval: a larger error would have shown with this number of samples",
  "by chance": "The ECE of a perfectly calibrated model with the same number of samples",
};

const VERDICT =
  "Overconfident: confidence exceeds accuracy, by more than chance. No error detected: the interval of the ECE holds " +
  "0, so an error as large as its upper end could be missed.";

const MANY = 3; // models beside whose errors there is no room for more

/** A line of names with their numbers. */
function pairs(list, attributes) {
  return h(
    "p",
    attributes,
    list.map(([name, value, rest]) =>
      h("span", { class: "pair-of", title: MEANINGS[name] }, `${name} `, h("b", {}, value), rest),
    ),
  );
}

/** Reliability diagram, cumulative curve, and the errors with their intervals. */
export function createReliabilityFace(el, app, frame) {
  el.classList.add("curves");
  const reliabilityEl = h("div", { class: "plot-holder" });
  const cumulativeEl = h("div", { class: "plot-holder" });
  const list = h("ul", { class: "measures", "aria-label": "Calibration error per model" });
  el.append(
    reliabilityEl,
    cumulativeEl,
    h("div", { class: "measures-holder", tabindex: "0", role: "group", "aria-label": "Measures" }, list),
  );
  const reliability = createReliability(reliabilityEl);
  const cumulative = createCumulative(cumulativeEl);
  let answer = null;

  function draw() {
    const few = answer?.count ? `Calibration needs 3 or more ${app.noun}.` : app.nothing();
    if (!drawable(frame, answer, !answer?.measures?.length && few)) return;
    const { edges, count, confidence, accuracy, ...rest } = answer.arrays;
    const models = app.shown(answer.models);
    const plain = (array) => array.data;
    reliability.set({
      models,
      edges: plain(edges),
      count: plain(count),
      confidence: plain(confidence),
      accuracy: plain(accuracy),
    });
    if (rest.cumulative_x) {
      cumulative.set({
        models,
        x: plain(rest.cumulative_x),
        confidence: plain(rest.cumulative_confidence),
        accuracy: plain(rest.cumulative_accuracy),
      });
    }
    measure(models);
    title();
  }

  /** Per model: a word, how sure and how right, the error with its interval, and what chance gives. */
  function measure(models) {
    const items = models.map((model) => {
      const one = answer.measures.find((found) => found.model === model.name && found.name === "ece") ?? {};
      const interval = isNumber(one.low) ? ` (${fixed(one.low, 3)}–${fixed(one.high, 3)})` : "";
      const missed = one.low === 0;
      return h(
        "li",
        {},
        h("p", {}, ...modelLabel(model, 16), h("b", { class: "verdict", title: VERDICT }, one.verdict)),
        pairs(
          [
            ["confidence", number(one.confidence)],
            ["accuracy", number(one.accuracy)],
          ],
          { class: "means" },
        ),
        pairs([
          [answer.scope === "orbit" ? "pooled ECE" : "ECE", number(one.value), interval],
          missed ? ["up to", number(one.high), " could be missed"] : ["by chance", number(one.expected)],
        ]),
        ...(one.caution ? [h("p", { class: "caution" }, `Caution: ${one.caution}`)] : []),
      );
    });
    fill(list, items);
    list.classList.toggle("many", models.length > MANY);
  }

  function title() {
    if (!answer?.count) return;
    const pooled = answer.scope === "orbit";
    const each = `${whole(answer.count)} ${answer.parts || "predictions"}${pooled ? ", all positions pooled" : ""}`;
    frame.note(pooled || answer.parts ? each : counted(answer.count, app.state.samples, app.noun));
  }

  const stop = app.on("calibration", (given) => ((answer = given), draw()));
  return { destroy: () => (stop(), reliability.destroy(), cumulative.destroy()) };
}
