// The whole data set along the orbit: one switch, and a face for each of its choices.

import { h, show } from "../core/dom.js";
import { shows } from "../core/selection_rules.js";
import { createFrame, createSwitch } from "./frame.js";
import { createClasses } from "./aggregate_classes.js";
import { createMean } from "./aggregate_mean.js";
import { createSpread } from "./aggregate_spread.js";
import { hintFor, hints } from "./help_text.js";

/** The choices: their words, what they are for, and what makes `{ focus, destroy }` in an element. */
const FACES = {
  mean: ["mean", "The average at each position", createMean],
  spread: ["spread", "How the samples differ at each position", createSpread],
  classes: ["by class", "A small plot for each class", createClasses],
};

/** The overview: where along the orbit do the models fail? */
export function createSection(el, app) {
  const frame = createFrame({ name: "aggregate", title: "Aggregate", hint: hintFor(hints.aggregate, app.group.kind) });
  el.append(frame.el);
  const names = shows(app.state);
  const choice = createSwitch(
    "Show",
    names.map((name) => [name, ...FACES[name].slice(0, 2)]),
    (value) => app.select({ show: value }),
  );
  frame.controls.append(choice.el);
  const faces = new Map();

  /** What a face says about itself; it is shown while the face is. */
  function sayings(name) {
    const last = { state: ["loading"], note: "" };
    const shown = () => app.store.get().show === name;
    return {
      state: (...given) => ((last.state = given), shown() && frame.state(...given)),
      note: (text) => ((last.note = text), shown() && frame.note(text)),
      again: () => (frame.state(...last.state), frame.note(last.state[0] === "ready" ? last.note : "")),
    };
  }

  function face(name) {
    if (!faces.has(name)) {
      const holder = frame.body.appendChild(h("div", { class: `face ${name}-face` }));
      const says = sayings(name);
      faces.set(name, { holder, says, ...FACES[name][2](holder, app, says) });
    }
    return faces.get(name);
  }

  function turn() {
    const { show: name } = app.store.get();
    choice.set(name);
    face(name).says.again();
    for (const [other, { holder }] of faces) show(holder, other === name);
  }

  const stop = app.store.subscribe(["show"], turn);
  turn();
  return {
    focus: () => face(app.store.get().show).focus(),
    destroy: () => (stop(), faces.forEach((each) => each.destroy())),
  };
}
