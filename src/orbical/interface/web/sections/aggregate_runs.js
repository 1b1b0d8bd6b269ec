/** The rows of a table of runs: their names and looks, their columns, their order, and maps of them. */
import { button, fill, h, modelLabel, write } from "../core/dom.js";
import { whole } from "../core/text.js";
import { DASHES, modelColor } from "../draw/colors.js";
import { distinct, precise } from "../draw/format.js";
import { atLeast, colorRange, upTo } from "../draw/scales.js";
import { createOrbitPlot } from "../plots/orbit.js";
import { createSparkline } from "../plots/sparkline.js";
import { createSelect, createSwitch, drawable } from "./frame.js";
import { createProgress } from "./progress.js";

const COLORS = 7;
const LONG = 12; // letters of a name that the table has room for

/** What the table has of each run. */
export const COLUMNS = [
  { key: "accuracy", title: "accuracy", meaning: "Accuracy over the orbit" },
  { key: "gap", title: "gap", meaning: "Confidence minus accuracy over the orbit" },
  { key: "ece", title: "ECE", meaning: "Expected calibration error over the orbit" },
  { key: "changed", title: "changed", meaning: "Share of samples whose prediction changes along the orbit" },
  { key: "mean", title: "mean", meaning: "Mean of the metric over the orbit" },
];

/** The columns that some run has; the mean of the accuracy is the accuracy. */
export function columnsOf(rows, metric) {
  return COLUMNS.filter(({ key }) => rows.some((row) => Number.isFinite(row[key] ?? NaN))).filter(
    ({ key }) => key !== "mean" || metric !== "correct",
  );
}

/** Whether each run has one model, so that its own name says enough. */
export function single(rows) {
  return new Set(rows.map(({ scan }) => scan)).size === rows.length;
}

/** The name, its `title` where that is cut, the color and the dash of each row: a color for each run, and a dash for each of its models. */
export function looksOf(rows) {
  const scans = [...new Set(rows.map(({ scan }) => scan))];
  const models = [...new Set(rows.map(({ model }) => model))];
  const alone = single(rows);
  const names = rows.map(({ scan, model }) => (alone ? scan : `${scan} · ${model}`));
  const short = distinct(names, LONG);
  return rows.map(({ scan, model }, r) => {
    const place = scans.indexOf(scan);
    const dash = alone ? place + Math.floor(place / COLORS) : models.indexOf(model);
    return {
      name: short[r],
      title: short[r] === names[r] ? null : names[r],
      color: modelColor(place),
      dash: DASHES[dash % DASHES.length],
    };
  });
}

/** The order of values, up or down; what has none comes last either way. */
export function orderBy(values, down) {
  const known = (value) => (typeof value === "string" || Number.isFinite(value ?? NaN) ? 0 : 1);
  const compared = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  return [...values.keys()].sort((i, j) => {
    const [a, b] = [values[i], values[j]];
    return known(a) - known(b) || (known(a) ? 0 : (down ? -1 : 1) * compared(a, b)) || i - j;
  });
}

/** Maps `{ name, values }` of some scans, `values` of all `models` and elements, flat; NaN where a run has none. */
export function mapsOf(rows, curves, size, scans, models) {
  const short = distinct(scans, LONG);
  return scans.map((scan, n) => {
    const values = new Float32Array(models.length * size).fill(NaN);
    rows.forEach((row, r) => {
      const m = models.length > 1 ? models.indexOf(row.model) : 0;
      if (row.scan === scan) values.set(curves.subarray(r * size, (r + 1) * size), m * size);
    });
    return { name: short[n], values };
  });
}

const CURVES = ["circle", "line"]; // elsewhere color shows one number for each position
const WIDE = 76; // of a map that is read
const MOST_BANDS = 8; // more would hide each other
const NARROWEST = 0.05; // of the whole range: colors spread over less would show noise
const RUN = "run";
const HERE = "here";

/** A function that writes numbers of a unit with their sign. */
const signed = (unit) => (value) => (value > 0 ? "+" : "") + precise(unit)(value);

/** The runs. */
export function createRuns(el, app, frame) {
  const curved = CURVES.includes(app.group.kind);
  const choice = createSwitch(
    "Draw runs as",
    [
      ["curves", curved ? "curves" : "maps", "The metric of each run"],
      ["difference", "difference", "How each run differs from one of them"],
    ],
    (value) => app.select({ runs: value }),
  );
  const against = createSelect("from", (value) => app.select({ against: value }), { quiet: true });
  const work = createProgress(app, "runs", () => "Comparing runs");
  const plotEl = h("div", { class: "plot-holder" });
  const head = h("tr", {});
  const body = h("tbody", {});
  const table = h("table", { "aria-label": "Runs" }, h("thead", {}, head), body);
  const caution = h("p", { class: "view-note caution" });
  const note = h("p", { class: "view-note" });
  el.append(
    h("div", { class: "runs-head" }, choice.el, against.el, work.el),
    plotEl,
    caution,
    h("div", { class: "runs-table", tabindex: "0", role: "group", "aria-label": "Table of runs" }, table, note),
  );
  const plot = createOrbitPlot(plotEl, app.group);
  let answer = null;
  let order = { by: null, down: false };
  let lines = [];

  const differing = () => app.store.get().runs === "difference";
  const size = () => app.group.names.length;

  /** What is drawn: the curves and their ends, in the words of their numbers. */
  function drawn() {
    const { arrays } = answer;
    const metric = app.metricNamed(answer.metric);
    if (!differing()) {
      const { values, low, high } = arrays;
      const range = limits(values.data, upTo((high ?? values).data, answer.range), metric);
      return { values, low, high, range, ramp: "sequential", title: metric.title, format: metric.unit, metric };
    }
    const { difference: values, difference_low: low, difference_high: high } = arrays;
    const title = `${metric.title}, difference from ${answer.against}`;
    const range = limits(values.data, answer.difference_range, metric);
    return { values, low, high, range, ramp: "diverging", title, format: signed(metric.unit), metric };
  }

  /** The ends of an axis, or of colors: those of differences are as far from zero, so that the middle is none. */
  function limits(values, range, metric) {
    if (curved) return range;
    const rows = answer.rows.map((_, r) => values.subarray(r * size(), (r + 1) * size()));
    const found = colorRange(rows);
    if (!differing()) return metric.unit === "share" ? atLeast(found, range, NARROWEST) : found;
    const most = Math.max(...found.map(Math.abs)) || 1;
    return [-most, most];
  }

  function draw() {
    if (!drawable(frame, answer, answer?.rows?.length === 0 && leftOut())) return;
    const scans = [...new Set(answer.rows.map(({ scan }) => scan))];
    const left = answer.left_out.length;
    frame.note(`${whole(scans.length)} runs${left ? `, ${whole(left)} left out` : ""}`);
    choice.set(app.store.get().runs);
    against.el.hidden = !differing();
    against.set(
      scans.map((scan) => [scan, scan]),
      answer.against,
    );
    const said = answer.rows.map((row) => row[differing() ? "difference_caution" : "caution"]).find(Boolean);
    write(caution, said ? `Caution: ${said}.` : "");
    tabulate();
    if (curved) drawCurves();
    else drawMaps();
    mark();
  }

  function drawCurves() {
    const { values, low, high, metric, ...about } = drawn();
    const bands = answer.rows.length <= MOST_BANDS ? { low: low.data, high: high.data } : {};
    plot.set({
      models: looksOf(answer.rows),
      values: values.data,
      ...bands,
      ...about,
      higherIsBetter: metric.higher_is_better,
    });
    write(note, words(""));
  }

  /** A column for each run as far as there is room, in the order of the table, and a row for each model. */
  function drawMaps() {
    const { values, range, ramp, title, format, metric } = drawn();
    const room = plotEl.clientWidth / (WIDE * (["slices", "ball"].includes(app.group.kind) ? 3 : 1)) - 1;
    const sorted = [...new Set(lines.map(({ row }) => row.scan))];
    const wanted = differing() ? sorted.filter((scan) => scan !== answer.against) : sorted;
    const fitting = wanted.slice(0, Math.max(1, Math.floor(room)));
    const names = single(answer.rows) ? [""] : [...new Set(answer.rows.map(({ model }) => model))];
    const levels = mapsOf(answer.rows, values.data, size(), fitting, names);
    const cells = levels.flatMap((level) => names.map((_, m) => level.values.subarray(m * size(), (m + 1) * size())));
    const all = new Float32Array(cells.length * size());
    cells.forEach((part, k) => all.set(part, k * size()));
    plot.set({
      models: names.map((name) => (name ? app.look(name) : { name: "", color: "var(--ink)" })),
      values: all,
      levels,
      range,
      ramp,
      fixed: true,
      higherIsBetter: metric.higher_is_better,
      title,
      format,
    });
    const left = wanted.length - fitting.length;
    write(note, words(left > 0 ? `The first ${fitting.length} of ${wanted.length} runs in the table are drawn.` : ""));
  }

  const leftOut = () =>
    answer.left_out.length
      ? `Left out: ${answer.left_out.map(({ scan, reason }) => `${scan} (${reason})`).join(", ")}.`
      : "";

  /** What the reader must know to trust the comparison. */
  function words(first) {
    const others = answer.rows.filter((row, r) => !row.same && answer.rows.findIndex((x) => x.scan === row.scan) === r);
    const said = others.map(({ scan, count }) => {
      const every = answer.whole ? "" : `, and all ${whole(count)} of them are used`;
      return `${scan} has other samples${every}.`;
    });
    const lone = answer.rows.filter((row) => !row.paired && row.scan !== answer.against);
    const metric = app.metricNamed(answer.metric);
    const names = [...new Set(lone.map(({ scan }) => scan))].join(", ");
    const which = metric.per_sample ? `the difference of ${names}` : `differences of ${metric.title}`;
    const apart = differing() && lone.length ? `Samples are not paired in ${which}.` : "";
    return [first, ...said, apart, leftOut()].filter(Boolean).join(" ");
  }

  /** The value of a row in a column, to sort by. */
  function cell(row, r, key, { data }) {
    if (key === RUN) return `${row.scan} ${row.model}`;
    if (key === HERE) return data[r * size() + app.element()];
    return row[key];
  }

  function sort(key) {
    order = { by: key, down: order.by === key ? !order.down : key !== RUN };
    draw();
    head.querySelector(`[data-key="${key}"]`)?.focus();
  }

  function heading(key, words, title) {
    const now = order.by === key;
    const sorted = now ? (order.down ? "descending" : "ascending") : "none";
    const arrow = now ? (order.down ? " ↓" : " ↑") : "";
    const face = button(words + arrow, () => sort(key), { title: `${title}. Click to sort.`, "data-key": key });
    return h("th", { scope: "col", "aria-sort": sorted }, face);
  }

  function tabulate() {
    const { values, range, ramp, metric } = drawn();
    const looks = looksOf(answer.rows);
    const columns = columnsOf(answer.rows, answer.metric);
    const here = differing() ? "Difference at the position" : `${metric.title} at the position`;
    fill(
      head,
      heading(RUN, "run", "The scan"),
      h("th", { scope: "col" }, "orbit"),
      heading(HERE, "here", here),
      columns.map(({ key, title, meaning }) => heading(key, title, key === "mean" ? `${metric.title}: mean` : meaning)),
    );
    const keys = answer.rows.map((row, r) => (order.by === null ? r : cell(row, r, order.by, values)));
    lines = orderBy(keys, order.down).map((r) => {
      const spark = createSparkline(app.group);
      spark.set({
        model: looks[r],
        values: values.data.subarray(r * size(), (r + 1) * size()),
        range,
        ramp,
        higherIsBetter: metric.higher_is_better,
      });
      return { row: answer.rows[r], r, spark, number: h("td", { class: "number" }), look: looks[r] };
    });
    body.replaceChildren(...lines.map((line) => rowOf(line, columns, metric)));
  }

  function rowOf({ row, look, spark, number }, columns, metric) {
    const now = row.scan === app.state.scan;
    const title = now ? `${row.scan} is shown` : `Show ${row.scan}`;
    const name = h(
      "button",
      { type: "button", title, "aria-current": now ? "true" : null },
      ...modelLabel(look, app.store.get().stage ? 60 : 22),
    );
    const written = (key) => {
      const format = key === "mean" ? precise(metric.unit) : (key === "gap" ? signed : precise)("share");
      return h("td", { class: "number" }, format(row[key] ?? NaN));
    };
    return h(
      "tr",
      { class: now ? "now" : null, onclick: () => open(row) },
      h("th", { scope: "row" }, name),
      h("td", {}, spark.element),
      number,
      columns.map(({ key }) => written(key)),
    );
  }

  /** Show another scan; what names samples is kept where it has the same ones. */
  function open({ scan, same }) {
    if (scan === app.state.scan) return;
    app.store.set({ scan, ...(same ? {} : { filter: [], subset: "", sample: 0, pins: [] }) });
  }

  /** The position, and what each run has there. */
  function mark() {
    if (!answer?.rows?.length) return;
    const { element, position } = app.place();
    plot.mark(element, position);
    const { values, low, high, format } = drawn();
    const say = precise(format);
    for (const { r, spark, number } of lines) {
      const at = r * size() + element;
      write(number, say(values.data[at]));
      const known = Number.isFinite(low.data[at]);
      number.title = known ? `95 % interval ${say(low.data[at])} to ${say(high.data[at])}` : "";
      spark.mark(element);
    }
  }

  plot.onmove((move) => app.move(move));
  const stops = [
    app.on("runs", (given) => ((answer = given), draw())),
    app.store.subscribe(["runs"], draw),
    app.store.subscribe(["stage"], () => requestAnimationFrame(draw)), // with more room, more maps
    app.store.subscribe(["element", "position"], mark),
    app.theme.on(draw),
  ];
  return {
    focus: () => plot.focus(),
    destroy: () => (stops.forEach((stop) => stop()), work.destroy(), plot.destroy()),
  };
}
