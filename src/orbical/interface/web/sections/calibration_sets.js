// Sets of classes that hold the true one with a chosen probability: how often they do, and how large they are.

import { fill, h, modelLabel, write } from "../core/dom.js";
import { whole } from "../core/text.js";
import { fixed } from "../draw/format.js";
import { createOrbitPlot } from "../plots/orbit.js";
import { drawable } from "./frame.js";

const WHERE = { identity: "on untransformed inputs", pooled: "on all positions" };

/** Coverage and mean size along the orbit, and in numbers at the position. */
export function createSetsFace(el, app, frame) {
  el.classList.add("curves");
  const holders = { coverage: h("div", { class: "plot-holder" }), size: h("div", { class: "plot-holder" }) };
  const list = h("ul", { class: "measures", "aria-label": "Coverage and size per model" });
  const note = h("p", { class: "view-note" });
  el.append(
    holders.coverage,
    holders.size,
    h("div", { class: "measures-holder", tabindex: "0", role: "group", "aria-label": "Measures" }, list, note),
  );
  const plots = Object.fromEntries(
    Object.entries(holders).map(([name, holder]) => [name, createOrbitPlot(holder, app.group)]),
  );
  let answer = null;

  function draw() {
    const none = `None of the tested ${app.noun} is in this subset.`;
    if (!drawable(frame, answer, !answer?.count && none)) return;
    frame.note(`sets that should hold the true class ${fixed(100 * answer.wanted, 0)} % of the time`);
    const models = app.shown(answer.models);
    const part = (name) => answer.arrays[name].data;
    const most = Math.max(1, ...Array.from(part("size")).filter(Number.isFinite));
    for (const [name, plot] of Object.entries(plots)) {
      plot.set({
        models,
        values: part(name),
        low: part(`${name}_low`),
        high: part(`${name}_high`),
        range: name === "coverage" ? [0, 1] : [0, most],
        title: name === "coverage" ? "coverage" : "classes in a set",
        format: name === "coverage" ? "share" : "number",
      });
    }
    const said = `Calibrated ${WHERE[answer.calibrated]} of ${whole(answer.held)} ${app.noun}, chosen at random; tested on ${whole(answer.count)} others.`;
    write(note, said);
    mark();
  }

  function mark() {
    const { element, position } = app.place();
    for (const plot of Object.values(plots)) plot.mark(element, position);
    if (!answer?.arrays?.coverage) return;
    const size = answer.arrays.coverage.shape[1];
    const items = app.shown(answer.models).map((model, m) => {
      const at = (name) => answer.arrays[name].data[m * size + element];
      const word =
        at("coverage_high") < answer.wanted
          ? "too low"
          : at("coverage_low") > answer.wanted
            ? "more than asked"
            : "as asked";
      const pair = (name, digits) =>
        h(
          "span",
          { class: "pair-of" },
          `${name === "size" ? "classes in a set" : name} `,
          h("b", {}, fixed(at(name), digits)),
          ` (${fixed(at(`${name}_low`), digits)}–${fixed(at(`${name}_high`), digits)})`,
        );
      return h(
        "li",
        {},
        h(
          "p",
          {},
          ...modelLabel(model, 20),
          h("b", { class: "verdict", title: "Whether the interval of the coverage holds what was asked for" }, word),
        ),
        h("p", {}, pair("coverage", 3)),
        h("p", {}, pair("size", 2)),
      );
    });
    fill(list, items);
  }

  Object.values(plots).forEach((plot) => plot.onmove((move) => app.move(move)));
  const stops = [
    app.on("coverage", (given) => ((answer = given), draw())),
    app.store.subscribe(["element", "position"], mark),
    app.theme.on(draw),
  ];
  return { destroy: () => (stops.forEach((stop) => stop()), Object.values(plots).forEach((plot) => plot.destroy())) };
}
