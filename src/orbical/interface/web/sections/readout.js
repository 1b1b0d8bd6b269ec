// Where we are on the orbit, and what each model says there, in numbers.

import { button, h, modelLabel, write } from "../core/dom.js";
import { className } from "../core/text.js";
import { precise, shortened } from "../draw/format.js";

const LONG = 10;
const share = precise("share");

/** The strip above input and answer. It follows the handle at once, the numbers follow the models. */
export function createSection(el, app) {
  const name = h("p", { class: "where" });
  const badge = h("span", { class: "badge" });
  const home = button("reset", () => app.move({ element: app.group.identity, position: [], done: true }), {
    class: "link",
    title: "Return to the original input",
  });
  const rows = h("tbody", {});
  const head = h(
    "thead",
    {},
    h(
      "tr",
      {},
      ["model", "metric", "vs. consensus", "prediction", "confidence"].map((text) =>
        h("th", { scope: "col", class: text === "vs. consensus" ? "agreed" : null }, text),
      ),
    ),
  );
  const table = h(
    "table",
    { class: "answers" },
    h("caption", { class: "hidden" }, "Predictions at the current position"),
    head,
    rows,
  );
  el.append(
    h(
      "div",
      { class: "readout", role: "group", "aria-label": "Current position" },
      h("div", { class: "here" }, h("div", { class: "here-line" }, name, home), badge),
      table,
    ),
  );
  let sample = null;
  let place = null;
  let cells = [];
  let key = "";
  let filled = { classes: app.state.classes.length > 0, sure: app.state.calibration !== false };

  /** Columns that no model fills are left out: the class, and how sure it is. */
  function layout(models, { classes, sure }) {
    table.classList.toggle("plain", !classes && !sure);
    table.classList.toggle("unnamed", !classes);
    const wanted = models.map((model) => model.name).join("|");
    if (wanted === key) return;
    key = wanted;
    cells = models.map((model) => {
      const made = {
        metric: h("td", {}),
        agreed: h("td", { class: "agreed" }),
        answer: h("td", {}, h("span", { class: "answer-name" }), h("span", {})),
        sure: h("td", {}),
      };
      const whole = { title: model.name, "aria-label": model.name };
      const title = h("th", { scope: "row", ...whole }, ...modelLabel(model, 16));
      return { ...made, row: h("tr", {}, title, made.metric, made.agreed, made.answer, made.sure) };
    });
    rows.replaceChildren(...cells.map((cell) => cell.row));
  }

  /** The number of a model in an answer, by its name: an answer may be older than the menus. */
  function from(answer, array, model) {
    const at = answer?.models?.indexOf(model.name) ?? -1;
    return array && at >= 0 ? array.data[at] : NaN;
  }

  /** The metric of a model here: what the model just gave, else what the scan holds. */
  function valueOf(metric, model) {
    const now = place?.arrays[`detail/${metric}`];
    if (now) return from(place, now, model);
    const at = sample?.group ? -1 : (sample?.models?.indexOf(model.name) ?? -1);
    return at < 0 ? NaN : sample.arrays.values.data[at * app.group.names.length + app.place().element];
  }

  /** Whether the models run: what they gave here decides, not what was hoped for. */
  function running() {
    if (!app.state.live)
      return {
        words: "scanned positions only",
        title: "No models were passed: the page snaps to the scanned positions",
      };
    const failed = Object.keys(place?.errors ?? {});
    if (!failed.length) return { state: "live", words: "live", title: "The models run as you drag" };
    const title = `${failed.join(", ")}: failed here; the numbers are those of the scan. Prediction says why.`;
    if (!place.live) return { state: "failing", words: "models failed", title };
    return { state: "failing", words: `${shortened(failed[0], 12)} failed`, title };
  }

  function draw() {
    const { element, position } = app.place();
    const here = app.placeName(element, position);
    write(name, here);
    name.classList.toggle("long", here.length > LONG);
    home.classList.toggle("away", element === app.group.identity && !position.length);
    const { words, title, state } = running();
    write(badge, words);
    badge.classList.toggle("is-live", state === "live");
    badge.classList.toggle("is-failing", state === "failing");
    badge.title = title;
    const metric = app.sampleMetric();
    const models = app.shown();
    const predicted = place?.arrays["detail/predicted"];
    const sure = place?.arrays["detail/confidence"];
    table.classList.toggle("once", metric.name === "confidence");
    table.classList.toggle("both", app.byBoth() && metric.name === "score");
    if (place) filled = { classes: Boolean(predicted), sure: Boolean(sure) };
    layout(models, filled);
    write(head.rows[0].cells[1], app.shortTitle(metric));
    const format = precise(metric.unit);
    models.forEach((model, m) => {
      write(cells[m].metric, format(valueOf(metric.column, model)));
      if (app.byBoth()) write(cells[m].agreed, format(valueOf("score_vs_consensus", model)));
      const usual = place?.consensus?.[place.models.indexOf(model.name)];
      if (predicted) say(cells[m].answer, from(place, predicted, model), app.byConsensus() ? usual : place.truth);
      write(cells[m].sure, share(from(place, sure, model)));
    });
  }

  /** The class, and whether it is right, by sign and word and not by color alone. */
  function say(cell, label, truth) {
    const known = truth !== null && truth !== undefined;
    const right = known && label === truth;
    const said = className(app.state, label);
    write(cell.firstChild, said);
    write(cell.lastChild, known ? (right ? " ✓" : " ✗") : "");
    cell.className = known ? (right ? "right" : "wrong") : "";
    const against = app.byConsensus() ? "consensus" : "label";
    cell.title = known ? `Predicted ${said}, ${against} ${className(app.state, truth)}` : said;
  }

  const stops = [
    app.on("place", (given) => ((place = given.error ? null : given), draw())),
    app.store.subscribe(["sample"], () => ((place = null), (sample = null), draw())),
    app.on("sample", (given) => ((sample = given), draw())),
    app.store.subscribe(["element", "position", "metric", "models", "reference"], draw),
  ];
  return { destroy: () => stops.forEach((stop) => stop()) };
}
