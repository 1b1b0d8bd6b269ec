// All samples, arranged by how the models respond along the orbit.

import { button, h, show, write } from "../core/dom.js";
import { same } from "../core/selection.js";
import { sentence } from "../core/text.js";
import { badToGood, classColor, colorize, isDark } from "../draw/colors.js";
import { shortened } from "../draw/format.js";
import { classLabels } from "../draw/map_layout.js";
import { createScatter } from "../plots/scatter.js";
import { createFrame, createSelect, createSwitch } from "./frame.js";
import {
  circleAround,
  createColorKey,
  createHoverCard,
  createMapGlyphs,
  scaledAbout,
  withColorRange,
} from "./embedding_parts.js";
import { hints } from "./help.js";
import { createProgress } from "./progress.js";

const METHODS = { pca: "PCA", ica: "ICA", isomap: "Isomap", tsne: "t-SNE", umap: "UMAP" };

/** The embedding with its menus, its lasso and its color key. */
export function createSection(el, app) {
  const frame = createFrame({ name: "embedding", title: "Embedding", hint: hints.embedding });
  el.append(frame.el);
  const method = createSelect("Method", (value) => app.select({ method: value }), { quiet: true });
  const color = createSelect("Color", (value) => app.select({ color: value }), { quiet: true });
  const of = createSelect("Model", (value) => app.select({ of: value }), {
    quiet: true,
    title: "Embed the responses of all models, or of one",
  });
  const lassoButton = button("lasso", () => arm(!armed), {
    class: "tool",
    "aria-pressed": "false",
    title:
      "Draw around points to select a subset. Shift-drag adds to it, Alt-drag takes out, both keep only what is circled",
  });
  const marks = createSwitch(
    "Marks",
    [
      ["points", "points", "A point for each sample"],
      ["glyphs", "glyphs", "The orbits of samples at their places, as many as there is room for; zoom in for more"],
    ],
    (value) => app.select({ marks: value }),
  );
  frame.controls.append(method.el, color.el, of.el, marks.el, lassoButton);
  const plotEl = frame.body.appendChild(h("div", { class: "plot-holder" }));
  const scatter = createScatter(plotEl);
  const glyphs = createMapGlyphs(app, plotEl);
  const card = createHoverCard(plotEl, app);
  const key = createColorKey();
  const working = createProgress(
    app,
    "embedding",
    (answer) => `Computing ${METHODS[answer.method] ?? answer.method} …`,
    (answer) => answer.stopped && whole && app.select({ method: whole.method, of: whole.of }),
  );
  const trouble = h("p", { class: "quiet-text trouble", role: "status", hidden: true });
  frame.body.append(key.el, working.el, trouble);
  /** @type {any[]} */
  let [xy, whole, values, mask, armed, awaited] = [null, null, null, null, false, true];
  // What was circled last: the outline, where it was drawn, the set it made, and upon which one.
  /** @type {Record<string, any>} */
  let drawn = { polygon: [], map: null, set: "", base: "", how: "new" };

  function arm(on) {
    armed = on;
    lassoButton.setAttribute("aria-pressed", String(on));
    scatter.setMode(on ? "lasso" : "select");
  }

  function draw() {
    if (!xy) return;
    show(trouble, Boolean(xy.error));
    plotEl.classList.toggle("away", Boolean(xy.error));
    if (xy.error) return (write(trouble, sentence(xy.error)), frame.note(""), frame.state("ready"));
    if (!app.state.samples) return frame.state("empty", `This scan has no ${app.noun}.`);
    frame.state("ready");
    const dark = isDark(frame.el);
    const count = app.state.samples;
    const colors = values
      ? colorize(
          values.colors ? Float32Array.from(values.arrays.values.data, values.colors.place) : values.arrays.values.data,
          { kind: values.scale, range: badToGood(values.range, values.higher_is_better) },
          dark,
        )
      : new Uint8Array(4 * count).fill(128);
    const labels =
      values?.scale === "classes"
        ? classLabels(xy.arrays.xy.data, values.arrays.values.data, values.names, (c) =>
            classColor(values.colors.place(c), dark),
          )
        : [];
    const inside = mask?.count < count ? mask.arrays?.mask?.data : null; // of all samples none is faint
    scatter.set({ xy: xy.arrays.xy.data, colors, mask: inside, labels });
    outline();
    scatter.select(app.store.get().sample);
    if (values)
      key.set(
        { ...values, title: app.byConsensus() ? values.title.replace("true class", "consensus class") : values.title },
        dark,
      );
    const part = xy.explained ? xy.explained.reduce((sum, one) => sum + one, 0) : 0;
    const share = part >= 0.005 ? ` · ${Math.round(100 * part)} % of variance` : "";
    frame.note(`similar responses lie close${share}`);
  }

  function menus() {
    const { state } = app;
    const now = app.store.get();
    method.set(
      state.methods.map((name) => [name, METHODS[name] ?? name]),
      now.method,
    );
    color.set(
      state.colors.map((name) => [name, state.columns.find((one) => one.name === name)?.title ?? sentence(name)]),
      now.color,
    );
    of.set([["", "all models"], ...state.models.map(({ name }) => [name, shortened(name)])], now.of);
  }

  /** A coarse map comes before the whole one; while that is computed it is dimmed. */
  function receive(answer) {
    xy = answer;
    if (answer.progress === undefined && !answer.error) whole = answer;
    mark(Boolean(xy.error));
    return draw();
  }

  /** The map that is chosen, and the one that is shown. */
  const wanted = () => {
    const { method: name, of: model } = app.store.get();
    return { method: name, of: model, reference: app.byConsensus() ? "consensus" : "truth" };
  };
  const mapOf = ({ method: name, of: model, reference }) => ({ method: name, of: model, reference });

  /** Dim the map while another one is computed: what is circled must be what is selected. */
  function mark(answered) {
    awaited = !answered && (!xy || xy.progress !== undefined || !same(mapOf(xy), wanted()));
    scatter.setBusy(awaited);
    lassoButton.disabled = awaited;
    if (awaited) arm(false);
    frame.body.classList.toggle("stale", awaited);
  }

  /** The outline stays while the map and the set that it made are shown. */
  function outline() {
    const stays = drawn.set && drawn.set === app.store.get().subset && xy && same(drawn.map, mapOf(xy));
    scatter.setLasso(stays ? drawn.polygon : []);
  }

  /** Make a set of the samples inside a polygon on the map that is shown, upon the present set or another. */
  function circle(polygon, how, base) {
    const map = mapOf(xy);
    app.sets.choose({ lasso: { polygon, ...map } }, how, { upon: base }).then(
      (made) => ((drawn = { polygon, map, set: made.hash, base: made.base, how }), outline()),
      (error) => (app.announce(error.message), outline()),
    );
  }

  /** The subset around the selected sample, wider or narrower: the lasso of the keyboard. */
  function region(factor) {
    if (!xy || xy.error || awaited) return;
    const { sample, subset } = app.store.get();
    const center = xy.arrays.xy.data.slice(2 * sample, 2 * sample + 2);
    const again = drawn.set && drawn.set === subset && same(drawn.map, mapOf(xy));
    if (again) circle(scaledAbout(drawn.polygon, center, factor), drawn.how, drawn.base);
    else circle(circleAround(center, 0.12), app.sets.mode());
  }

  scatter.onpick((sample) => app.select({ sample }));
  scatter.onhover((point) => card.set(point));
  scatter.onlasso((polygon, how) => {
    arm(false);
    if (polygon.length) circle(polygon, how || app.sets.mode());
    else app.select({ subset: "" });
  });
  frame.body.addEventListener("keydown", (event) => {
    const factor = { "+": 1.25, "=": 1.25, "-": 0.8, "−": 0.8 }[event.key];
    if (!factor) return;
    event.preventDefault();
    region(factor);
  });
  function drawGlyphs() {
    const on = app.store.get().marks === "glyphs";
    marks.set(app.store.get().marks);
    scatter.setGlyphs(on ? glyphs : null);
  }

  const stops = [
    glyphs.on(() => app.store.get().marks === "glyphs" && scatter.repaint()),
    app.store.subscribe(["marks"], drawGlyphs),
    app.on("embedding", receive),
    app.on(
      "color",
      (answer) => (
        (values = answer.error ? null : withColorRange(answer, app.state.classes, app.sampleMetric().rounding)),
        draw()
      ),
    ),
    app.on("subset", (answer) => ((mask = answer), draw())),
    app.store.subscribe(["sample"], ({ sample }) => scatter.select(sample)),
    app.store.subscribe(["method", "color", "of"], menus),
    app.store.subscribe(["method", "of", "reference"], () => mark(false)),
    app.store.subscribe(["subset"], outline),
    app.theme.on(draw),
  ];
  menus();
  drawGlyphs();
  // A WebGL canvas can be read only in the turn in which it was painted.
  return {
    focus: () => scatter.focus(),
    repaint: () => scatter.repaint(),
    destroy: () => (
      stops.forEach((stop) => stop()),
      working.destroy(),
      card.destroy(),
      glyphs.destroy(),
      scatter.destroy()
    ),
  };
}
