// What the models answer at the current position, and what went wrong where one raised.

import { fill, h, swatch } from "../core/dom.js";
import { createFrame, drawable } from "./frame.js";
import { hints } from "./help.js";
import { createZoom } from "./zoom.js";
import { createNamedView } from "../views/index.js";

/** The answers of the models. */
export function createSection(el, app) {
  const frame = createFrame({ name: "detail", title: "Prediction", hint: hints.detail });
  el.append(frame.el);
  const errors = frame.body.appendChild(h("div", { class: "errors", role: "alert", tabindex: "0", hidden: true }));
  const body = h("div", { class: "view", tabindex: "0", role: "group", "aria-label": "Predictions" }); // it may scroll
  const holder = createNamedView(frame.body.appendChild(body), app.state);
  const zoom = createZoom(frame, app.store);
  let shown = "";

  /** One line per model that raised; written only when it changes, so it is read out once. */
  function complain(found) {
    const text = JSON.stringify(found);
    if (text === shown) return;
    shown = text;
    errors.hidden = !Object.keys(found).length;
    const lines = Object.entries(found).map(([model, words]) => h("p", {}, swatch(app.look(model)), words));
    fill(errors, lines, h("p", { class: "after" }, "Showing the stored results instead."));
  }

  function draw(answer) {
    if (!answer.error) complain(answer.errors ?? {});
    if (!drawable(frame, answer, !answer.detail && "No predictions stored at this position.")) return;
    holder.set(answer.detail.view, app.viewContent(answer, "detail"));
  }

  const stop = app.on("place", draw);
  return { focus: () => frame.el.focus(), zoom, destroy: () => (stop(), zoom.destroy(), holder.destroy()) };
}
