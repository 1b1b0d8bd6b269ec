// The bar of menus: data set, models, metric, labels or consensus.

import { button, fill, h, modelLabel, write } from "../core/dom.js";
import { MANY } from "../draw/colors.js";
import { attachPopover } from "../core/popover.js";
import { toggled } from "../core/selection_rules.js";
import { sentence } from "../core/text.js";
import { createSelect, createSwitch } from "./frame.js";

/** What is shown: the controls that all sections share. */
export function createSection(el, app) {
  const { state } = app;
  const scan = createSelect("Data set", (value) => app.select({ scan: value }));
  const models = h("div", { class: "group", role: "group", "aria-label": "Models" });
  const metric = createSelect("Metric", (value) => app.select({ metric: value }), {
    title: "Metric shown in the orbit plots",
  });
  const reference = createSwitch(
    "Compare with",
    [
      ["truth", state.task.truth_name === "label" ? "labels" : "truth", "Compare predictions with the ground truth"],
      ["consensus", "consensus", "Compare predictions with each model's own average over the orbit; needs no labels"],
      ["both", "both", "Show one sample against both, side by side; the other plots compare with the truth"],
    ],
    (value) => app.select({ reference: value }),
  );
  if (state.scans.length > 1) el.append(scan.el);
  const kinds = new Set(state.scans.map(({ name, title }) => title?.slice(name.length)));
  const scans = state.scans.map(({ name, title }) => [name, kinds.size > 1 ? title : name]);
  el.append(
    h("div", { class: "field" }, h("span", {}, "Models"), models),
    metric.el,
    h("div", { class: "field" }, h("span", {}, "Compare with"), reference.el),
  );
  for (const needy of ["truth", "both"]) reference.disable(needy, !state.task.labeled);

  const many = state.models.length > MANY;
  const opener = button("", null, { class: "toggle" });
  const list = many ? h("div", { class: "group model-menu" }) : models; // buttons, behind one where they are many
  if (many) {
    models.append(opener);
    const all = button("all", () => app.select({ models: [] }), { class: "link" });
    attachPopover(opener, { label: "Models", content: () => [list, all] });
  }

  function drawModels() {
    const all = state.models.map(({ name }) => name);
    const chosen = app.store.get().models;
    const shown = chosen.length || all.length;
    write(opener, `${shown === all.length ? "all" : shown} of ${all.length} ▾`);
    const focused = list.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
    const made = state.models.map(({ name }) => {
      const on = String(!chosen.length || chosen.includes(name));
      const press = () => app.select({ models: toggled(app.store.get().models, name, all) });
      const says = { "aria-label": name, "aria-pressed": on, "data-key": name };
      return button(modelLabel(app.look(name), many ? 40 : 20), press, { class: "toggle", ...says });
    });
    fill(list, made);
    made.find((one) => one.dataset.key === focused)?.focus(); // the buttons were made anew
  }

  function draw() {
    const now = app.store.get();
    const shown = state.scans.find(({ name }) => name === now.scan) ?? state.scans[0];
    scan.set(scans, shown?.name);
    scan.select.title = shown?.title ?? "";
    const current = app.metric();
    metric.set(
      state.metrics.map(({ name, title }) => [name, name === current.name ? current.title : title]),
      current.name,
    );
    metric.select.title = `${sentence(current.meaning)}.`;
    reference.set(now.reference);
    drawModels();
  }

  const stops = [app.store.subscribe(["scan", "models", "metric", "reference"], draw)];
  draw();
  return { destroy: () => stops.forEach((stop) => stop()) };
}
