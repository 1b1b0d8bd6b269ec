// How often the predictions of the subset change along the orbit, which a mean curve hides.

import { fill, h, modelLabel } from "../core/dom.js";
import { fixed } from "../draw/format.js";

/** What is counted where an answer has many parts. */
const PARTS = { pixels: "pixel changes", points: "point changes", voxels: "voxel changes" };

const percent = (share) => fixed(100 * share, share > 0 && share < 0.095 ? 1 : 0);

/** A share with its interval, in percent. */
export function withInterval([share, low, high]) {
  if (!Number.isFinite(share)) return ["–", ""];
  const ends = Number.isFinite(low) ? ` (${percent(low)}–${percent(high)})` : "";
  return [`${percent(share)} %`, ends];
}

/** A table below the aggregate plot; nothing for tasks that do not say which answers are the same. */
export function createChanges(app) {
  const { consistency } = app.state;
  const what = PARTS[consistency] ? consistency : app.noun;
  const columns = [
    [
      "changed",
      PARTS[consistency] ?? "prediction changes",
      `The share of ${what} whose prediction is not the same at all positions`,
    ],
    ["pairs", "pairs disagree", "The share of pairs of positions whose predictions disagree"],
  ];
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, "on the orbit"),
    columns.map(([, text, title]) => h("th", { scope: "col", title: `${title}, with its 95 % interval` }, text)),
  );
  const rows = h("tbody", {});
  const table = h("table", {}, h("thead", {}, head), rows);
  const el = h(
    "div",
    { class: "changes", role: "group", "aria-label": "Predictions that change", hidden: !consistency },
    table,
  );

  function cell(given, m) {
    const [share, ends] = withInterval(given?.data.subarray(3 * m, 3 * m + 3) ?? [NaN]);
    return h("td", {}, h("b", {}, share), " ", h("span", {}, ends.trim()));
  }

  /** The rows are there before their numbers, so that the plot above keeps its size. */
  function draw(answer) {
    const known = !answer.error && answer.count > 0 ? answer.arrays : {};
    const made = app.shown(answer.models).map((model, m) => {
      const title = h("th", { scope: "row" }, ...modelLabel(model, 16));
      const cells = columns.map(([name]) => cell(known[name], m));
      return h("tr", {}, title, cells);
    });
    fill(rows, made);
  }

  const stops = consistency ? [app.on("consistency", draw)] : [];
  if (consistency) draw({ models: [], count: 0 });
  return { el, destroy: () => stops.forEach((stop) => stop()) };
}
