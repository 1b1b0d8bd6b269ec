// Several samples side by side under one orbit handle: input, orbit and predictions of each.

import { button, fill, h, swatch, write } from "../core/dom.js";
import { className, singular } from "../core/text.js";
import { precise, shortened } from "../draw/format.js";
import { createGlyph } from "../plots/glyph.js";
import { createNamedView } from "../views/index.js";
import { createFrame, drawable } from "./frame.js";
import { hints } from "./help.js";

const [GLYPH, LARGE] = [60, 220]; // the side of an orbit, in the strip and on the stage; as in the styles

/** The strip of cards; it is away while nothing is pinned. */
export function createSection(el, app) {
  const frame = createFrame({ name: "pinned", title: "Pinned", hint: hints.pinned });
  const one = singular(app.noun);
  const row = h("div", { class: "pins" });
  frame.controls.append(button("unpin all", () => app.select({ pins: [] }), { class: "tool" }));
  frame.body.append(row);
  let cards = [];

  function card(sample) {
    const title = button("", () => app.select({ sample }), { class: "pin-name", title: `Select this ${one}` });
    const away = button("×", () => app.pin(sample), {
      class: "pin-away",
      title: "Unpin",
      "aria-label": `Unpin ${one} ${app.number(sample)}`,
    });
    const view = h("div", { class: "view" });
    const glyph = createGlyph(app.group, GLYPH);
    const answers = h("div", { class: "pin-answers" });
    const choose = (event) => event.target.closest("button") || app.select({ sample });
    const whole = h(
      "div",
      { class: "pin", onclick: choose },
      h("div", { class: "pin-head" }, title, away),
      h("div", { class: "pin-pictures" }, view, glyph.element),
      answers,
    );
    return { sample, title, whole, answers, glyph, view: createNamedView(view, app.state), viewEl: view };
  }

  /** A card is made when its sample is pinned, and stays until it is not. */
  function follow() {
    const { pins } = app.store.get();
    fill(el, pins.length ? frame.el : null);
    cards.filter(({ sample }) => !pins.includes(sample)).forEach((gone) => gone.view.destroy());
    cards = pins.map((sample) => cards.find((known) => known.sample === sample) ?? card(sample));
    row.replaceChildren(...cards.map(({ whole }) => whole));
    app.thumbnails.want(pins.filter((sample) => !app.thumbnails.get(sample)));
    mark();
    sizes();
    glyphs();
  }

  function mark() {
    const chosen = app.store.get().sample;
    for (const { sample, title, whole } of cards) {
      title.setAttribute("aria-pressed", String(sample === chosen));
      whole.classList.toggle("is-selected", sample === chosen);
      const label = app.thumbnails.get(sample)?.label ?? null;
      const known = label !== null && app.state.classes.length;
      const name = app.called(sample) || `#${app.number(sample)}`;
      write(title, known ? `${shortened(name, 18)} · ${className(app.state, label)}` : shortened(name, 24));
    }
    const { element, position } = app.place();
    frame.note(`at ${app.placeName(element, position)}`);
  }

  function sizes() {
    const side = app.store.get().stage === "pinned" ? LARGE : GLYPH;
    cards.forEach(({ glyph }) => glyph.resize(side));
  }

  /** The orbits, all on one scale. */
  function glyphs() {
    const found = cards.map(({ sample }) => app.thumbnails.get(sample));
    const known = found.filter((each) => each?.values);
    const ends = known.flatMap(({ range }) => range ?? []).filter(Number.isFinite);
    const range = ends.length ? [Math.min(...ends), Math.max(...ends)] : [0, 1];
    const { higher_is_better: higherIsBetter } = app.sampleMetric();
    cards.forEach(({ glyph }, n) => {
      glyph.element.classList.toggle("away", !found[n]?.values);
      if (!found[n]?.values) return;
      glyph.set({ models: app.shown(), values: found[n].values, range, higherIsBetter, mark: app.element() });
    });
  }

  function draw(answer) {
    if (!drawable(frame, answer)) return;
    answer.pins.forEach((about, n) => {
      const at = cards.find(({ sample }) => sample === about.sample);
      if (!at) return; // unpinned meanwhile
      const prefix = `${n}/`;
      const mine = Object.entries(answer.arrays).filter(([name]) => name.startsWith(prefix));
      const arrays = Object.fromEntries(mine.map(([name, array]) => [name.slice(prefix.length), array]));
      const content = app.viewContent({ ...about, arrays }, "input");
      const drawn = Object.keys(content.fields).length > 0;
      at.viewEl.hidden = !drawn;
      if (drawn) at.view.set(about.input.view, content);
      at.answers.replaceChildren(...app.shown(about.models).map((model, m) => said(model, m, about, arrays)));
    });
  }

  /** What a model predicts: the class and how sure it is, else the metric. */
  function said(model, m, about, arrays) {
    const metric = app.sampleMetric();
    const [predicted, sure] = [arrays["detail/predicted"], arrays["detail/confidence"]];
    const value = arrays[`detail/${metric.column}`]?.data[m] ?? NaN;
    const number = predicted && sure ? precise("share")(sure.data[m]) : precise(metric.unit)(value);
    const words = predicted ? className(app.state, predicted.data[m]) : app.shortTitle(metric);
    const truth = app.byConsensus() ? about.consensus?.[m] : about.truth;
    const known = predicted && truth !== null && truth !== undefined;
    const right = known && predicted.data[m] === truth;
    return h(
      "p",
      { title: `${model.name}: ${words}, ${predicted ? "confidence" : ""} ${number}`.replace(",  ", " ") },
      swatch(model),
      h("span", { class: "pin-said" }, words),
      known ? h("span", { class: right ? "right" : "wrong" }, right ? "✓" : "✗") : null,
      h("b", {}, number),
    );
  }

  const stops = [
    app.on("pinned", draw),
    app.thumbnails.on(() => (mark(), glyphs())),
    app.store.subscribe(["pins"], follow),
    app.store.subscribe(["sample", "element", "position"], mark),
    app.store.subscribe(["element"], glyphs),
    app.store.subscribe(["stage"], () => (sizes(), glyphs())),
    app.store.subscribe(["metric", "reference", "models"], () => app.thumbnails.want(app.store.get().pins)),
    app.theme.on(glyphs),
  ];
  follow();
  return {
    focus: () => frame.el.focus(),
    destroy: () => (stops.forEach((stop) => stop()), cards.forEach(({ view }) => view.destroy())),
  };
}
