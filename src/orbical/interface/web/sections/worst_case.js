// The worst case between the scanned positions: marks on an orbit plot, and a line that says how bad it is.

import { h, show } from "../core/dom.js";
import { positionName } from "../core/text.js";
import { precise } from "../draw/format.js";
import { createLegend } from "./faces.js";

const MOST = 300; // marks that can be told apart
const MEANING =
  "The worst position found between the scanned ones, and how much worse it is than the worst scanned one";

/**
 * The marks of some samples, one for each model shown and sample.
 * @param {any} answer
 * @param {{ name: string }[]} models
 * @param {(sample: number) => boolean} chosen
 */
export function marksOf(answer, models, chosen) {
  const { samples, nearest, score, missed, coords } = answer.arrays;
  const [count, names] = [samples.data.length, answer.coords];
  const places = Array.from(samples.data.keys()).filter((i) => chosen(samples.data[i]));
  return models.flatMap(({ name }, m) => {
    const row = answer.models.indexOf(name);
    const found = places.map((i) => {
      const at = row * count + i;
      const where = names.map((key, k) => [key, coords.data[at * names.length + k]]);
      return {
        m,
        element: nearest.data[at],
        coords: Object.fromEntries(where),
        value: score.data[at],
        missed: missed.data[at],
      };
    });
    return row < 0 ? [] : found.filter(({ value }) => Number.isFinite(value));
  });
}

/** Follow the answers; `redraw` is called when they come. */
export function createWorstCase(app, redraw) {
  const legend = createLegend();
  const el = h("div", { class: "worst-case", title: MEANING, hidden: true }, legend.el);
  let answer = null;

  /** The name of a worst position: that between elements, or its nearest element. */
  function named({ coords, element }) {
    const keys = Object.keys(app.group.coords);
    const whole = keys.length > 0 && keys.every((key) => key in coords);
    return whole
      ? positionName(
          app.group,
          keys.map((key) => coords[key]),
        )
      : `near ${app.group.names[element]}`;
  }

  /** Write the line and return the marks; nothing where another metric or reference is plotted. */
  function of(models, metric, chosen) {
    const against = app.byConsensus() ? "consensus" : "truth";
    const fits = answer && metric.name === "score" && answer.reference === against;
    const marks = fits ? marksOf(answer, models, chosen) : [];
    show(el, marks.length > 0);
    if (!marks.length) return [];
    const write = precise(metric.unit);
    const worse = ({ value, missed }) => `${write(value)} (${write(missed)} worse)`;
    const each = models.map((_, m) => marks.filter((mark) => mark.m === m));
    const mean = (list, key) => list.reduce((sum, mark) => sum + mark[key], 0) / list.length;
    const found = each.filter((list) => list.length); // of a model that was not searched there is none
    const values = found.map((list) => ({ value: mean(list, "value"), missed: mean(list, "missed") }));
    const count = Math.max(...found.map((list) => list.length));
    const where = count > 1 ? `worst case, mean of ${count}` : `worst case, ${named(marks[0])}`;
    const apart = count === 1 && marks.length > 1; // each model has a position of its own
    const searched = models.filter((_, m) => each[m].length);
    legend.set(searched, values, { where: apart ? "worst case" : where, format: worse });
    const every = Math.ceil(count / MOST);
    return each.flatMap((list) =>
      list
        .filter((_, i) => i % every === 0)
        .map((mark) => ({
          ...mark,
          small: count > 1,
          title: `${models[mark.m].name}: worst case at ${named(mark)}, ${worse(mark)}`,
        })),
    );
  }

  const stop = app.on("worst", (given) => ((answer = given.error ? null : given), redraw()));
  return { el, of, destroy: stop };
}
