// The transformed input at the current position.

import { keep } from "../draw/format.js";
import { createFrame, drawable } from "./frame.js";
import { hints } from "./help.js";
import { createZoom } from "./zoom.js";
import { createNamedView } from "../views/index.js";

/** Why there is nothing to draw: no inputs, or inputs that only Python can move. */
export function whyEmpty(state) {
  if (state.inputs) return "A report cannot move inputs of this kind. They are shown by orbical view.";
  const passed = state.command ? "with --data" : "as data";
  return `The scan stores no inputs. Pass them ${passed}, or scan with ${keep(state, "inputs")}.`;
}

/** What the models see. */
export function createSection(el, app) {
  const frame = createFrame({ name: "input", title: "Input", hint: hints.input });
  el.append(frame.el);
  const holder = createNamedView(frame.body, app.state);
  const zoom = createZoom(frame, app.store);
  frame.body.addEventListener("slices", (/** @type {any} */ { detail: { places, done } }) =>
    app.store.set({ slices: places }, { done }),
  );

  function draw(answer) {
    const content = answer.error ? { fields: {} } : app.viewContent(answer, "input");
    if (!drawable(frame, answer, !Object.keys(content.fields).length && whyEmpty(app.state))) return;
    holder.set(answer.input.view, content);
  }

  const stop = app.on("place", draw);
  return { focus: () => frame.el.focus(), zoom, destroy: () => (stop(), zoom.destroy(), holder.destroy()) };
}
