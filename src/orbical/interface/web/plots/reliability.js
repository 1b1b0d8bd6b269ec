/** Reliability diagram: accuracy against confidence in bins, with the counts below. */

import { dashOf, MANY } from "../draw/colors.js";
import { count as counted, fixed } from "../draw/format.js";
import { anyFinite, clamp, linear } from "../draw/scales.js";
import { INK, SOFT, haloed, node, round, stroke } from "../draw/svg.js";
import { axes, axesBox, bar, countBars, guide, ticksFor } from "./axes.js";
import { createFrame, sayEmpty } from "./frame.js";
import { marker } from "./marks.js";
import { attachReadout } from "./tooltip.js";

/** From this many samples on a bin is drawn in full. */
const ENOUGH = 40;

/** Make the diagram in `el`: `{ set({ models, edges, count, confidence, accuracy }), ... }`. */
export function createReliability(el) {
  /** @type {Record<"models" | "edges" | "count" | "confidence" | "accuracy", any>} */
  const data = { models: [], edges: [], count: [], confidence: [], accuracy: [] };
  /** @type {any} */
  let place = null;
  const frame = createFrame(el, paint, { name: "reliability" });
  frame.root.setAttribute("role", "img");

  function paint() {
    const bins = data.edges.length - 1;
    if (bins < 1 || !anyFinite(data.accuracy)) return sayEmpty(frame, data.models.length ? "no data" : "");
    const box = axesBox(frame, { top: 6 });
    const strip = clamp(box.height * 0.2, 18, 54);
    const upper = { ...box, height: Math.max(box.height - strip - 6, 20) };
    place = {
      bins,
      box,
      upper,
      strip,
      base: upper.top + upper.height + 6 + strip,
      x: linear([0, 1], [box.left, box.left + box.width]),
      y: linear([0, 1], [upper.top + upper.height, upper.top]),
    };
    const { x, y } = place;
    const frameOf = axes(upper, { x, y, xTicks: [], yTicks: ticksFor([0, 1], upper.height, 28), yName: "accuracy" });
    const hint = haloed(x(0.98), y(0) - 10, "below diagonal: overconfident", { "text-anchor": "end" });
    const parts = [frameOf, guide(x(0), y(0), x(1), y(1)), ...countBars(place, data)];
    if (data.models.length <= MANY) data.models.forEach((model, m) => parts.push(gaps(model, m)));
    data.models.forEach((model, m) => parts.push(curve(model, m)));
    if (upper.width > 200 && upper.height > 130) parts.push(hint);
    frame.back.replaceChildren(...parts);
    frame.front.replaceChildren();
    return undefined;
  }

  const at = (m, b) => m * place.bins + b;
  const seen = (m, b) => data.count[at(m, b)] > 0 && Number.isFinite(data.accuracy[at(m, b)]);

  /** How much a bin says: few samples are drawn faintly. */
  const weight = (m, b) => clamp(Math.sqrt(data.count[at(m, b)] / ENOUGH), 0.15, 1);

  /** Bins of one model: the step of its accuracy, filled up to its confidence. */
  function gaps(model, m) {
    const drawn = node("g", { fill: model.color });
    const full = data.models.length > 2 ? 0.08 : 0.16;
    for (let b = 0; b < place.bins; b += 1) {
      if (!seen(m, b)) continue;
      const [left, right] = [place.x(data.edges[b]), place.x(data.edges[b + 1])];
      const [one, other] = [place.y(data.accuracy[at(m, b)]), place.y(data.confidence[at(m, b)])];
      const look = { stroke: model.color, "stroke-width": 1.5, "stroke-opacity": round(0.8 * weight(m, b)) };
      drawn.append(
        bar(left, Math.min(one, other), right, Math.max(one, other), { "fill-opacity": round(full * weight(m, b)) }),
      );
      drawn.append(stroke(left, one, right, one, look));
    }
    return drawn;
  }

  /** The mean confidence and accuracy of each bin, joined; marks grow with the samples in them. */
  function curve(model, m) {
    const bins = Array.from({ length: place.bins }, (_, b) => b).filter((b) => seen(m, b));
    const most = Math.max(1, ...bins.map((b) => data.count[at(m, b)]));
    const point = (b) => [place.x(data.confidence[at(m, b)]), place.y(data.accuracy[at(m, b)])];
    const dash = { stroke: model.color, "stroke-width": 1.5, "stroke-dasharray": dashOf(model, m) || null };
    const joins = bins.slice(1).map((b, k) =>
      stroke(...point(bins[k]), ...point(b), {
        ...dash,
        "stroke-opacity": round(Math.min(weight(m, b), weight(m, bins[k]))),
      }),
    );
    const marks = bins.map((b) => {
      const size = 2.5 + 3 * Math.sqrt(data.count[at(m, b)] / most);
      return marker(m, ...point(b), size, model.color, { opacity: round(0.3 + 0.7 * weight(m, b)) });
    });
    return node("g", {}, ...joins, ...marks);
  }

  const inNumbers = (k) => `${fixed(data.accuracy[k], 3)} at ${fixed(data.confidence[k], 3)}`;

  attachReadout(frame, (px) => {
    const value = place?.x.invert(px);
    if (!(value >= -0.02 && value <= 1.02) || !anyFinite(data.accuracy)) return null;
    const last = place.bins - 1;
    const bin = clamp(Array.from(data.edges).findIndex((edge) => edge >= value) - 1, 0, last);
    const b = value >= data.edges[last] ? last : bin;
    const { upper, box } = place;
    const shade = { fill: INK, "fill-opacity": 0.06, stroke: SOFT, "stroke-opacity": 0.5, "data-transient": "" };
    const ends = [place.x(data.edges[b]), place.x(data.edges[b + 1])];
    const marks = [bar(ends[0], upper.top, ends[1], upper.top + box.height, shade)];
    const rows = data.models.map((model, m) => ({
      color: model.color,
      name: `${model.name} (${counted(data.count[at(m, b)])})`,
      value: seen(m, b) ? inNumbers(at(m, b)) : "no samples",
    }));
    const head = `confidence ${fixed(data.edges[b], 2)} to ${fixed(data.edges[b + 1], 2)}: accuracy`;
    return { head, rows, marks };
  });

  return {
    set(given) {
      Object.assign(data, given);
      const names = data.models.map((model) => model.name).join(", ");
      frame.root.setAttribute("aria-label", `Reliability diagram: ${names || "no data"}`);
      frame.redraw();
    },
    destroy: () => frame.destroy(),
  };
}
