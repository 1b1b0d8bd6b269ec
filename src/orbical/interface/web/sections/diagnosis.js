// What is wrong and what would help, behind one button: failures that were found, advice, and what if.

import { button, fill, h, modelLabel, uid, write } from "../core/dom.js";
import { copyText } from "../core/downloads.js";
import { attachPanel } from "../core/popover.js";
import { newId, viewOf } from "../core/saved_list.js";
import { sentence, singular, whole } from "../core/text.js";
import { fixed } from "../draw/format.js";
import { createOrbitPlot } from "../plots/orbit.js";
import { absent, createFilmStrip, createLayers } from "./causes.js";
import { createSelect } from "./frame.js";

const percent = (share) => (Number.isFinite(share) ? `${fixed(100 * share, 1)}\u00a0%` : "–");
const signed = (value) => `${value > 0 ? "+" : ""}${fixed(value, 3)}`;
const WHERE = {
  identity: "temperature, fitted upright",
  pooled: "temperature, whole orbit",
  position: "at each position",
};

const TRAINED = "orbical why run.zarr -m net=mine.nets:net --train train.npz";

/** Code beside a button that copies it. */
function copyable(code) {
  const copy = button("Copy", () => copyText(code.textContent).then(() => write(copy, "Copied")), { class: "tool" });
  copy.addEventListener("blur", () => write(copy, "Copy"));
  return h("div", { class: "code" }, code, copy);
}

/**
 * The switches: what they are called, and the words of a choice.
 * @type {Record<string, [string, (value: any) => string]>}
 */
const SWITCHES = {
  average: ["Average over", (n) => (n === 1 ? "no other position" : `${n} positions`)],
  recalibrate: ["Recalibrate", (where) => WHERE[where] ?? "no"],
  reject: ["Pass on below", (least) => (least === null ? "half" : least === "fitted" ? "the cheapest" : String(least))],
  coverage: ["Sets", (share) => (share === null ? "no" : `cover ${percent(share)}`)],
};
const COLUMNS = [
  ["accuracy", "accuracy", "Fraction of correct predictions, mean over the orbit"],
  ["pooled_ece", "ECE", "Expected calibration error, all positions pooled"],
  ["answered", "acts on", "Fraction of the predictions that are confident enough, or whose set is one class"],
  ["risk", "wrong then", "Fraction of wrong ones among those"],
  ["cost", "cost", "Of a prediction: an error costs 1, passing it on costs 0.5"],
  ["coverage", "coverage", "Fraction of sets that hold the true class"],
  ["size", "classes", "Mean number of classes in a set"],
];

/** The panel; it asks when it is first opened. */
export function createDiagnosis(opener, app) {
  const found = h("div", { class: "failures" });
  const advised = h("div", { class: "advice" });
  const switches = h("div", { class: "menu-row" });
  const plotEl = h("div", { class: "plot-holder" });
  const table = h("table", { class: "what-if" });
  const numbers = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What changes" }, table);
  const note = h("p", { class: "quiet-text", role: "status" });
  const code = h("pre", { tabindex: "0" });
  const [strip, layers] = [createFilmStrip(app), createLayers(app)];
  const part = (title, ...content) => h("section", {}, h("h3", {}, title), ...content);
  const panel = h(
    "div",
    {
      class: "diagnosis",
      popover: "manual",
      id: uid("diagnosis"),
      "data-transient": true,
      role: "group",
      "aria-label": "Diagnosis",
    },
    h(
      "div",
      { class: "head" },
      h("h2", {}, "Diagnosis"),
      button("Close", () => held.close(), { class: "tool" }),
    ),
    part("Where it fails", found),
    part(`This ${singular(app.noun)} along its orbit`, strip.el),
    part("Where inside the network", layers.el),
    part(
      "Augmentation, data or architecture",
      h("p", { class: "quiet-text" }, "The training data are not on the page; with them, a command tells the cause."),
      copyable(h("pre", { tabindex: "0" }, TRAINED)),
    ),
    part("What would help", advised),
    part("What if", switches, numbers, plotEl, note, copyable(code)),
  );
  const plot = createOrbitPlot(plotEl, app.group);
  let change = {};
  let answer = null;
  const selects = Object.entries(SWITCHES).map(([name, [title]]) => ({
    name,
    ...createSelect(title, (value) => ask({ ...change, [name]: JSON.parse(value) })),
  }));
  fill(switches, selects);
  const held = attachPanel(opener, panel, {
    begin() {
      if (answer) return;
      for (const el of [found, strip.el, advised, note]) write(el, "Computing …");
      for (const kind of ["failures", "flips", "advice"]) app.request(kind);
      ask({});
    },
  });

  function ask(wanted) {
    change = wanted;
    app.request("whatif", { change });
  }

  const more = (title, ...content) => h("details", {}, h("summary", {}, title), ...content);

  /** What a failure shows: its samples, where and for which it is worst. */
  const viewed = ({ set, element, sample }) => ({ subset: set, filter: [], element, position: [], sample });

  function failure(one) {
    const keep = () => {
      const view = viewOf({ ...app.store.get(), ...viewed(one) });
      app.findings.save({ id: newId(), title: one.sentence.slice(0, 200), note: "", view });
      write(mark, "Bookmarked");
    };
    const mark = button("Bookmark", keep, { class: "tool", "aria-label": `Bookmark: ${one.sentence}` });
    const go = button(one.sentence, () => app.select(viewed(one)), {
      class: "link",
      title: "Show these samples there",
    });
    return h("li", {}, h("div", { class: "failure" }, go, mark));
  }

  function drawFailures(given) {
    const why = absent(given);
    if (why) return write(found, why);
    const [sure, open] = [true, false].map((one) => given.failures.filter(({ confirmed }) => confirmed === one));
    const said = sure.length ? "Confirmed on samples that were not searched." : "No failure is confirmed.";
    const count = `${whole(given.searched)} subsets and parts of the orbit were compared.`;
    fill(
      found,
      h("ol", {}, sure.map(failure)),
      h("p", { class: "quiet-text" }, [said, count, given.scope].filter(Boolean).join(" ")),
      open.length ? more(`${whole(open.length)} not confirmed`, h("ol", {}, open.map(failure))) : null,
    );
  }

  function remedy({ name, gain, low, high, passes, needs, change: wanted }) {
    const attempt = button("Try", () => ask(wanted), { class: "link", "aria-label": `Try: ${name}` });
    const cost = `${passes === 1 ? "1 pass" : `${passes} passes`}, ${needs}`;
    return h(
      "li",
      {},
      h("b", {}, name),
      `: cost ${signed(-gain)} (${signed(-high)} to ${signed(-low)}); ${cost} `,
      attempt,
    );
  }

  function drawAdvice(given) {
    const why = absent(given);
    if (why) return write(advised, why);
    const models = given.models.map(({ model, sentence: said, remedies, expectations, missing }) => [
      h("p", {}, ...modelLabel(app.look(model), 24), ": ", said),
      h(
        "ol",
        {},
        remedies
          .filter(({ helps }) => helps)
          .slice(0, 3)
          .map(remedy),
      ),
      expectations.length
        ? more(
            "What to expect of training",
            ...expectations.map(({ name, expect }) => h("p", {}, `${sentence(name)}: ${expect}.`)),
          )
        : null,
      ...missing.map((text) => h("p", { class: "quiet-text" }, `Not tried: ${text}.`)),
    ]);
    fill(advised, models.flat());
  }

  function drawWhatIf(given) {
    const why = absent(given);
    for (const el of [switches, numbers, plotEl, code.parentElement]) el.hidden = Boolean(why);
    write(note, why);
    if (why) return;
    answer = given;
    for (const { name, set, select } of selects) {
      const words = SWITCHES[name][1];
      set(
        given.choices[name].map((value) => [JSON.stringify(value), words(value)]),
        JSON.stringify(change[name] ?? given.choices[name][0]),
      );
      select.disabled = given.choices[name].length < 2;
    }
    const models = app.shown(given.models);
    const columns = COLUMNS.filter(([name]) => models.some((_, m) => Number.isFinite(given.after[name]?.[m])));
    const written = (name, value) => (["cost", "size"].includes(name) ? fixed(value, 3) : percent(value));
    const cell = (name, m) => {
      const [before, after] = [given.before, given.after].map((one) => written(name, one[name]?.[m]));
      return h(
        "td",
        {},
        before === after || before === "–" ? after : `${before}\u00a0→ `,
        before === after || before === "–" ? null : h("b", {}, after),
      );
    };
    fill(
      table,
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("td", {}),
          columns.map(([, words, title]) => h("th", { scope: "col", title }, words)),
        ),
      ),
      h(
        "tbody",
        {},
        models.map((model, m) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, ...modelLabel(model, 16)),
            columns.map(([name]) => cell(name, m)),
          ),
        ),
      ),
    );
    const [before, after] = ["before", "after"].map((when) => given.arrays[`${when}/accuracy`].data);
    const values = new Float32Array(2 * after.length);
    values.set(after);
    values.set(before, after.length);
    const faint = models.map((model) => ({ ...model, name: `${model.name}, before`, dash: "1 3" }));
    plot.set({
      models: [...models, ...faint],
      values,
      range: [0, 1],
      title: "accuracy",
      format: "share",
      higherIsBetter: true,
    });
    plot.mark(app.element());
    write(note, `Fitted to ${whole(given.held)} ${app.noun}, judged on ${whole(given.tested)} others. Dotted: before.`);
    write(code, given.code);
  }

  plot.onmove((move) => app.move(move));
  const stops = [
    app.on("failures", drawFailures),
    app.on("advice", drawAdvice),
    app.on("whatif", drawWhatIf),
    app.store.subscribe(["element", "position"], () => answer && plot.mark(app.element(), app.place().position)),
    app.store.subscribe(["models"], () => answer && ask(change)),
    app.store.subscribe(["models", "sample"], () => panel.matches(":popover-open") && app.request("flips")),
    strip.destroy,
    layers.destroy,
  ];
  return { toggle: held.toggle, destroy: () => (stops.forEach((stop) => stop()), plot.destroy(), held.destroy()) };
}
