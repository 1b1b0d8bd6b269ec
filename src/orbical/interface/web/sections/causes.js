// Why a model fails: one sample along its orbit with the places where predictions flip, and the layers of a network.

import { button, fill, h, modelLabel, write } from "../core/dom.js";
import { coordinates } from "../core/selection_rules.js";
import { className, positionName, sentence, singular } from "../core/text.js";
import { paint } from "../core/thumbnails.js";
import { fixed, shortened } from "../draw/format.js";

/** Why there is nothing to show; empty where there is. */
export const absent = ({ error, available, reason }) => (error ? error : available ? "" : sentence(`${reason}.`));

/** A table whose first column names its rows, in a box that scrolls. */
function tableOf(title, heads, rows) {
  const head = heads.map((words) => h("th", { scope: "col" }, words));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
    h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
  );
}

/** The selected sample along its orbit: pictures, the class that each model predicts, and a table of flips. */
export function createFilmStrip(app) {
  const el = h("div", { class: "film-strip" });
  const cursor = h("span", { class: "here", "aria-hidden": "true" });
  let waiting = [];
  let span = null;

  /** Where on the strip the page is. */
  function mark() {
    if (!span) return;
    const { element, position } = app.place();
    const [at] = position.length ? position : coordinates(app.group, element);
    const [low, high] = span;
    cursor.style.left = `${(100 * (at - low)) / (high - low)}%`;
  }

  /** A picture of a sample that is told when it comes. */
  function portrait(sample) {
    const canvas = h("canvas", { "aria-hidden": "true" });
    const draw = () => {
      const { picture } = app.thumbnails.get(sample) ?? {};
      if (picture) paint(canvas, picture);
      return Boolean(picture);
    };
    if (!draw()) waiting.push({ sample, draw });
    return canvas;
  }

  function frame(pictures, element, i) {
    const canvas = h("canvas", { "aria-hidden": "true" });
    if (pictures) {
      const [, height, width, channels] = pictures.shape;
      const size = height * width * channels;
      paint(canvas, { height, width, channels, data: pictures.data.subarray(i * size, (i + 1) * size) });
    }
    const name = h("span", {}, app.group.names[element]);
    return button([pictures ? canvas : null, name], () => app.move({ element }), { class: "frame" });
  }

  function band({ share, class: seen, wrong }) {
    const name = className(app.state, seen);
    const part = h("span", { class: wrong ? "wrong" : "", title: name }, share > 0.03 ? shortened(name, 12) : "");
    part.style.flexGrow = String(share);
    return part;
  }

  function flip(model, known, { at, width, before, after, nearest, element, position }) {
    const where = positionName(app.group, [at]);
    const go = button(where, () => app.move({ element, position }), { class: "link" });
    const like = `${singular(app.noun)} ${nearest}`;
    const other = () =>
      button([portrait(nearest), like], () => app.select({ sample: nearest }), { class: "link near" });
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, ...modelLabel(app.look(model), 16)),
      h("td", {}, `${className(app.state, before)} → ${className(app.state, after)}`),
      h("td", {}, go, ` ± ${fixed(width / 2, width < 0.1 ? 3 : 1)}`),
      known ? h("td", {}, nearest === null ? "–" : other()) : null,
    );
  }

  function draw(answer) {
    const why = absent(answer);
    if (why) return write(el, why);
    span = answer.span;
    waiting = [];
    const known = answer.models.some(({ flips }) => flips.some(({ nearest }) => nearest !== null));
    const rows = answer.models.flatMap(({ name, flips }) => flips.map((one) => flip(name, known, one)));
    const bands = answer.models.map(({ name, bands: own }) => [
      h("p", {}, ...modelLabel(app.look(name), 24)),
      h("div", { class: "bands" }, own.map(band)),
    ]);
    const after = known ? [`nearest ${singular(app.noun)} of that class`] : [];
    const frames = answer.frames.map((element, i) => frame(answer.arrays?.frames, element, i));
    fill(
      el,
      h("div", { class: "strip" }, h("div", { class: "frames" }, frames), bands.flat(), cursor),
      rows.length
        ? tableOf("Flips", ["model", "prediction", "flips at", ...after], rows)
        : h("p", { class: "quiet-text" }, "No prediction changes along this orbit."),
    );
    app.thumbnails.want(waiting.map(({ sample }) => sample));
    mark();
    return undefined;
  }

  const stops = [
    app.on("flips", draw),
    app.store.subscribe(["element", "position"], mark),
    app.thumbnails.on(() => (waiting = waiting.filter(({ draw: now }) => !now()))),
  ];
  return { el, destroy: () => stops.forEach((stop) => stop()) };
}

/** The share of the error that each layer adds, as bars; asked for by a button, because it takes many passes. */
export function createLayers(app) {
  const begin = button("Look inside", () => (write(note, "Computing …"), app.request("layers")), { class: "tool" });
  const note = h("span", { class: "quiet-text", role: "status" });
  const found = h("div", { class: "layers" });
  const el = h("div", {}, h("p", {}, begin, " ", note), found);

  function row(one, title, i) {
    const share = one.share[i];
    const bar = h("span", { class: "bar" });
    bar.style.width = `${Math.round(100 * Math.min(1, Math.max(0, share ?? 0)))}%`;
    const known = Number.isFinite(share);
    return h(
      "tr",
      { class: one.layers[i] === one.first ? "first" : "" },
      h("th", { scope: "row", title }, shortened(title, 34)),
      h("td", { class: "bars" }, bar, known ? `${fixed(100 * share, 0)} %` : "–"),
      h("td", {}, fixed(one.error[i], 3)),
      h("td", {}, one.moves[i]),
    );
  }

  function draw(answer) {
    const why = absent(answer);
    write(note, why);
    if (why) return;
    const parts = answer.models.map((one) => {
      const name = h("p", {}, ...modelLabel(app.look(one.model), 24), ": ");
      if (one.error && !one.layers) return [name, h("p", { class: "quiet-text" }, one.error)];
      const place = one.layers.indexOf(one.first);
      name.append(
        one.first
          ? `${one.titles[place]} adds the most, ${fixed(100 * one.share[place], 0)} % of the error of the predictions.`
          : "predictions move as they should: no layer adds an error.",
      );
      const heads = ["layer", "share of the error", "own error", "features move"];
      const rows = one.titles.map((title, i) => row(one, title, i));
      return [
        name,
        one.caution ? h("p", { class: "quiet-text" }, `Caution: ${one.caution}.`) : null,
        tableOf(`Layers of ${one.model}`, heads, rows),
      ];
    });
    fill(found, parts.flat());
  }

  return { el, destroy: app.on("layers", draw) };
}
