// The bar of menus: data set, models, subset by class, metric, labels or consensus.

import { button, fill, h, modelLabel } from "../core/dom.js";
import { attachPopover } from "../core/popover.js";
import { clauseOf, withClause } from "../core/clauses.js";
import { picked, toggled } from "../core/selection_rules.js";
import { sentence } from "../core/text.js";
import { createSelect, createSwitch } from "./frame.js";

const FEW = 12; // classes that are buttons beside each other, if their names are short
const LETTERS = 32;

/** What is shown: the controls that all sections share. */
export function createSection(el, app) {
  const { state } = app;
  const scan = createSelect("Data set", (value) => app.select({ scan: value }));
  const models = h("div", { class: "group", role: "group", "aria-label": "Models" });
  const classes = h("div", { class: "group classes", role: "group", "aria-label": "Classes in the subset" });
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
  scan.select.classList.add("scans");
  if (state.scans.length > 1) el.append(scan.el);
  el.append(
    h("div", { class: "field" }, h("span", {}, "Models"), models),
    state.classes.length ? h("div", { class: "field" }, h("span", {}, "Subset"), classes) : "",
    metric.el,
    h("div", { class: "field" }, h("span", {}, "Compare with"), reference.el),
  );
  for (const needy of ["truth", "both"]) reference.disable(needy, !state.task.labeled);

  function drawModels() {
    const all = state.models.map(({ name }) => name);
    const chosen = app.store.get().models;
    fill(
      models,
      state.models.map(({ name }) => {
        const on = !chosen.length || chosen.includes(name);
        return button(
          modelLabel(app.look(name)),
          () => (app.select({ models: toggled(chosen, name, all) }), refocus(models, name)),
          { class: "toggle", "aria-pressed": String(on), "data-key": name },
        );
      }),
    );
  }

  /** The classes of the filter; none for all. */
  const labels = () => clauseOf(app.store.get().filter, "label")?.values?.map(Number) ?? [];
  const choose = (chosen) =>
    app.select({
      filter: withClause(
        app.store.get().filter,
        { column: "label" },
        chosen.length ? { values: chosen.map(String) } : null,
      ),
    });

  function drawClasses() {
    const chosen = labels();
    if (state.classes.length > FEW || state.classes.join("").length > LETTERS) return drawMany(chosen);
    const all = state.classes.map((_, c) => c);
    const allButton = button("all", () => (choose([]), refocus(classes, "all")), {
      class: "toggle",
      "aria-pressed": String(!chosen.length),
      "data-key": "all",
    });
    return fill(
      classes,
      allButton,
      all.map((c) =>
        button(String(state.classes[c]), () => (choose(picked(chosen, c, all)), refocus(classes, c)), {
          class: "toggle",
          "aria-pressed": String(chosen.includes(c)),
          "data-key": c,
        }),
      ),
    );
  }

  /** Many classes: a menu of check boxes. */
  function drawMany(chosen) {
    if (!classes.firstChild) {
      const open = button("", null, { class: "toggle" });
      classes.append(open);
      attachPopover(open, {
        label: "Classes",
        content: () =>
          h(
            "div",
            { class: "checks" },
            state.classes.map((name, c) => check(String(name), c)),
          ),
      });
    }
    classes.firstChild.textContent = chosen.length ? `${chosen.length} of ${state.classes.length} ▾` : "all ▾";
  }

  function check(name, c) {
    const all = state.classes.map((_, one) => one);
    const input = h("input", {
      type: "checkbox",
      onchange: () => choose(picked(labels(), c, all)),
    });
    input.checked = labels().includes(c);
    return h("label", { class: "check" }, input, name);
  }

  /** The buttons were made anew: the focus stays on the one that was pressed. */
  function refocus(group, key) {
    group.querySelector(`[data-key="${CSS.escape(String(key))}"]`)?.focus();
  }

  function draw() {
    const now = app.store.get();
    scan.set(
      state.scans.map(({ name, title }) => [name, title ?? name]),
      now.scan || state.scans[0]?.name,
    );
    const current = app.metric();
    metric.set(
      state.metrics.map(({ name, title }) => [name, name === current.name ? current.title : title]),
      current.name,
    );
    metric.select.title = `${sentence(current.meaning)}.`;
    reference.set(now.reference);
    drawModels();
    drawClasses();
  }

  const stops = [app.store.subscribe(["scan", "models", "metric", "reference", "filter"], draw)];
  draw();
  return { destroy: () => stops.forEach((stop) => stop()) };
}
