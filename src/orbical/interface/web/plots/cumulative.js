/** Cumulative accuracy and confidence against the quantile of confidence. */

import { MANY } from "../draw/colors.js";
import { fixed, short } from "../draw/format.js";
import { anyFinite, clamp, linear } from "../draw/scales.js";
import { SOFT, label, node, polyline, stroke } from "../draw/svg.js";
import { axes, axesBox, ticksFor } from "./axes.js";
import { createFrame, sayEmpty } from "./frame.js";
import { marker } from "./marks.js";
import { attachReadout } from "./tooltip.js";

const KEY = 18;

/** Make the plot in `el`: `{ set({ models, x, confidence, accuracy }), ... }`, curves flat. */
export function createCumulative(el) {
  /** @type {Record<string, any>} */
  const data = { models: [], x: [], confidence: [], accuracy: [] };
  let place = null;
  const frame = createFrame(el, paint, { name: "cumulative" });
  frame.root.setAttribute("role", "img");
  const at = (m, k) => m * data.x.length + k;

  function paint() {
    if (!anyFinite(data.accuracy)) return sayEmpty(frame, data.models.length ? "no data" : "");
    const top = KEY + 4;
    const most = Math.max(...[...data.accuracy, ...data.confidence].filter(Number.isFinite), 1e-6);
    const high = most > 0.8 ? 1 : most; // nearly all: the axis ends at one
    const yTicks = ticksFor([0, high], frame.height - top - 40, 28);
    const box = axesBox(frame, { top, yTicks: yTicks.map(short) });
    const x = linear([0, 1], [box.left, box.left + box.width]);
    const y = linear([0, high * 1.03], [box.top + box.height, box.top]);
    place = { box, x, y };
    const frameOf = axes(box, {
      x,
      y,
      xTicks: ticksFor([0, 1], box.width, 40),
      yTicks,
      xName: "confidence quantile",
      yName: "cumulative fraction",
    });
    const curves = data.models.flatMap((model, m) => curve(model, m));
    frame.back.replaceChildren(...key(box, top - KEY / 2 - 2), frameOf, ...curves);
    frame.front.replaceChildren();
    return undefined;
  }

  /** The largest gap of a model in words. */
  function gapOf(m) {
    let [where, most] = [0, 0];
    for (let k = 0; k < data.x.length; k += 1) {
      const gap = data.accuracy[at(m, k)] - data.confidence[at(m, k)];
      if (Math.abs(gap) > Math.abs(most)) [where, most] = [k, gap];
    }
    const side = most < 0 ? "confidence above accuracy" : "accuracy above confidence";
    return { where, words: most === 0 ? "no gap" : `KS ${fixed(Math.abs(most), 3)}, ${side}` };
  }

  function key(box, y) {
    return [
      stroke(box.left, y, box.left + 20, y, { stroke: SOFT, "stroke-width": 2.2 }),
      label(box.left + 25, y, "accuracy", { "text-anchor": "start" }),
      stroke(box.left + 82, y, box.left + 102, y, { stroke: SOFT, "stroke-width": 1.3, "stroke-dasharray": "3 2.5" }),
      label(box.left + 107, y, "confidence", { "text-anchor": "start" }),
    ];
  }

  function curve(model, m) {
    const line = (values) => Array.from(data.x, (quantile, k) => [place.x(quantile), place.y(values[at(m, k)])]);
    const [accuracy, confidence] = [line(data.accuracy), line(data.confidence)];
    const { where } = gapOf(m);
    const between = [...accuracy, ...confidence.slice().reverse()].filter((point) => point.every(Number.isFinite));
    const marks = [0.25, 0.5, 0.75, 1]
      .map((share) => accuracy[Math.round(share * (data.x.length - 1)) - (share === 1 ? 0 : m)])
      .filter((point) => point?.every(Number.isFinite));
    const opacity = data.models.length > MANY ? 0 : 0.14;
    return [
      node("path", { d: polyline(between, true), fill: model.color, "fill-opacity": opacity }),
      node("path", {
        d: polyline(confidence),
        fill: "none",
        stroke: model.color,
        "stroke-width": 1.3,
        "stroke-dasharray": "3 2.5",
      }),
      node("path", { d: polyline(accuracy), fill: "none", stroke: model.color, "stroke-width": 2 }),
      stroke(...accuracy[where], ...confidence[where], { stroke: model.color, "stroke-width": 1.5 }),
      ...marks.map((point) => marker(m, ...point, 3.6, model.color)),
    ];
  }

  attachReadout(frame, (px) => {
    if (!place || !anyFinite(data.accuracy)) return null;
    const quantile = clamp(place.x.invert(px), 0, 1);
    const k = clamp(Math.round(quantile * (data.x.length - 1)), 0, data.x.length - 1);
    const { box, x } = place;
    const look = { stroke: SOFT, "stroke-dasharray": "2 3", "data-transient": "" };
    const marks = [stroke(x(data.x[k]), box.top, x(data.x[k]), box.top + box.height, look)];
    const rows = data.models.map((model, m) => ({
      color: model.color,
      name: model.name,
      value: `${fixed(data.accuracy[at(m, k)], 3)} / ${fixed(data.confidence[at(m, k)], 3)}`,
    }));
    return { head: `up to quantile ${fixed(data.x[k], 2)}: accuracy / confidence`, rows, marks };
  });

  return {
    set(given) {
      Object.assign(data, given);
      const each = data.models.map((model, m) => `${model.name} ${gapOf(m).words}`);
      const spoken = anyFinite(data.accuracy) ? each.join(", ") : "no data";
      frame.root.setAttribute("aria-label", `Cumulative accuracy and confidence: ${spoken}`);
      frame.redraw();
    },
    destroy: () => frame.destroy(),
  };
}
