// Which classes are taken for which at the position; each count selects the samples behind it.

import { fill, h, modelLabel, write } from "../core/dom.js";
import { attachRoving } from "../core/roving.js";
import { className, counted, sentence, whole } from "../core/text.js";
import { shortened } from "../draw/format.js";
import { drawable } from "./frame.js";

const FEW = 4; // classes whose names have room
const STRONGEST = 0.4; // of the color behind a count, which must stay legible

/** A matrix for each model; with many classes, a list of the most frequent confusions. */
export function createConfusionFace(el, app, frame) {
  const holder = h("div", { class: "confusions" });
  const note = h("p", { class: "view-note" });
  el.append(holder, note);
  let answer = null;

  const name = (one) => className(app.state, one);
  const words = ([expected, predicted, count]) =>
    `${name(expected)} predicted as ${name(predicted)}: ${whole(count)} ${app.noun}`;

  /** A count as a button that shows only the samples behind it. */
  function count(model, pair, text) {
    const [expected, predicted] = pair;
    const press = () => app.sets.choose({ cell: { model: model.name, expected, predicted } });
    const title = `${words(pair)}. Click to show only these.`;
    return h("button", { type: "button", class: "count", title, "aria-label": words(pair), onclick: press }, text);
  }

  function matrix(model, m) {
    const { data } = answer.arrays.counts;
    const { classes } = answer;
    const numbers = Array.from({ length: classes }, (_, i) => i);
    const [beside, above] = classes <= FEW ? [20, 14] : [10, 5]; // letters of a name
    const rows = numbers.map((expected) => {
      const counts = numbers.map((predicted) => data[(m * classes + expected) * classes + predicted]);
      const total = counts.reduce((sum, one) => sum + one, 0);
      const cells = counts.map((one, predicted) => {
        const cell = h("td", { class: predicted === expected ? "right" : null });
        cell.style.setProperty("--share", `${(100 * STRONGEST * one) / (total || 1)}%`);
        if (one) cell.append(count(model, [expected, predicted, one], whole(one)));
        return cell;
      });
      return h("tr", {}, h("th", { scope: "row", title: name(expected) }, shortened(name(expected), beside)), ...cells);
    });
    const heads = numbers.map((one) => h("th", { scope: "col", title: name(one) }, shortened(name(one), above)));
    const corner = h("td", { class: "corner", title: "Rows: expected class. Columns: predicted class." }, "↓ is → as");
    const table = h("table", {}, h("thead", {}, h("tr", {}, corner, ...heads)), h("tbody", {}, ...rows));
    attachRoving(table).renew();
    return table;
  }

  function list(model, m) {
    const { data, shape } = answer.arrays.pairs;
    const pairs = Array.from({ length: shape[1] }, (_, i) =>
      data.slice(3 * (m * shape[1] + i), 3 * (m * shape[1] + i + 1)),
    );
    const items = pairs
      .filter(([, , many]) => many > 0)
      .map((pair) => {
        const text = `${shortened(name(pair[0]), 18)} → ${shortened(name(pair[1]), 18)}`;
        return h("li", {}, count(model, [...pair], [h("span", {}, text), h("b", {}, whole(pair[2]))]));
      });
    return items.length ? h("ol", {}, ...items) : h("p", {}, "No sample is taken for another class here.");
  }

  function draw() {
    if (!drawable(frame, answer, !answer?.count && app.nothing())) return;
    frame.note(`${counted(answer.count, app.state.samples, app.noun)} at ${app.group.names[answer.element]}`);
    const made = app.shown(answer.models).map((model, m) => {
      const what = answer.arrays.counts ? matrix(model, m) : list(model, m);
      return h(
        "div",
        { class: "confusion", role: "group", "aria-label": `${model.name}: expected and predicted classes` },
        h("p", {}, ...modelLabel(model, 24)),
        what,
      );
    });
    fill(holder, made);
    write(note, answer.note ? sentence(`${answer.note}.`) : "");
  }

  const stop = app.on("confusion", (given) => ((answer = given), draw()));
  return { destroy: stop };
}
