// What the symmetry makes possible, with each model's point in it.

import { fill, h, modelLabel } from "../core/dom.js";
import { ceilingWords, leastWords, priceWords } from "../draw/bound_words.js";
import { createBounds } from "../plots/bounds.js";
import { createFrame, drawable } from "./frame.js";
import { hints } from "./help.js";

/** Sharp interval of the calibration error over accuracy, and the accuracy ceiling. */
export function createSection(el, app) {
  const frame = createFrame({ name: "bounds", title: "Bounds", hint: hints.bounds });
  el.append(frame.el);
  const plotEl = frame.body.appendChild(h("div", { class: "plot-holder" }));
  const plot = createBounds(plotEl);
  const words = frame.body.appendChild(
    h("div", { class: "bound-words", tabindex: "0", role: "group", "aria-label": "Bounds in words" }),
  );
  let answer = null;

  function draw() {
    if (!drawable(frame, answer)) return;
    frame.note("what the symmetry allows");
    const known = new Map(answer.models.map((model) => [model.name, model]));
    const models = app
      .shown()
      .filter(({ name }) => known.has(name))
      .map((model) => ({ ...known.get(model.name), ...model }));
    plot.set({ ...answer, models });
    fill(words, models.length ? h("p", {}, ceilingWords(models[0], app.noun)) : null, ...models.map(tell));
  }

  /** What a model pays for its accuracy, in words. */
  function tell(model) {
    const sentences = [priceWords(model, app.noun), leastWords(model)].filter(Boolean).join(" ");
    return h("p", {}, ...modelLabel(model, 20), h("span", {}, sentences));
  }

  const stop = app.on("bounds", (given) => ((answer = given), draw()));
  return { focus: () => frame.el.focus(), destroy: () => (stop(), plot.destroy()) };
}
