/** What a symmetry allows: the ECE interval at each model's accuracy, below the accuracy ceiling. */

import { fixed } from "../draw/format.js";
import { linear, nearestPlace } from "../draw/scales.js";
import { INK, SOFT, haloed, label, node, round, stroke } from "../draw/svg.js";
import { modelBounds, spreadLabels } from "../draw/bound_words.js";
import { axes, axesBox, guide, ticksFor } from "./axes.js";
import { createFrame, sayEmpty } from "./frame.js";
import { marker } from "./marks.js";
import { attachReadout } from "./tooltip.js";

/** Make the plot in `el`: `{ set({ models: [{ name, color, accuracy, ece, low, high }], ceiling }), ... }`. */
export function createBounds(el) {
  let models = [];
  let place = null;
  const frame = createFrame(el, paint, { name: "bounds" });
  frame.root.setAttribute("role", "img");
  const ticks = (pixels) => ticksFor([0, 1], pixels, 30);

  function paint() {
    const known = models.filter((model) => Number.isFinite(model.accuracy) && Number.isFinite(model.high));
    if (!known.length) return sayEmpty(frame, models.length ? "no bounds" : "");
    const box = axesBox(frame, { top: 22, right: 14, yTicks: ["0.8"] });
    const [x, y] = [linear([0, 1], [box.left, box.left + box.width]), linear([0, 1], [box.top + box.height, box.top])];
    place = { x, y, box };
    const frameOf = axes(box, {
      x,
      y,
      xTicks: ticks(box.width),
      yTicks: ticks(box.height),
      xName: "accuracy",
      yName: "expected calibration error",
    });
    const names = spreadLabels(
      known.map((model) => y(model.ece)),
      box.top + 8,
      box.top + box.height - 8,
    );
    const drawn = known.flatMap((model, k) => interval(model, names[k]));
    frame.back.replaceChildren(...beyond(known), frameOf, ...drawn);
    frame.front.replaceChildren();
    return undefined;
  }

  /** The ceiling, and the accuracies beyond it that no invariant model reaches. */
  function beyond(known) {
    const { x, box } = place;
    const ceiling = known.find((model) => Number.isFinite(model.ceiling))?.ceiling;
    if (!Number.isFinite(ceiling)) return [];
    const bottom = box.top + box.height;
    const area = { x: round(x(ceiling)), y: box.top, width: round(Math.max(x(1) - x(ceiling), 0)), height: box.height };
    const shade = { ...area, fill: SOFT, "fill-opacity": 0.16 };
    const right = ceiling > 0.5;
    const side = { "text-anchor": right ? "end" : "start", fill: INK };
    const words = label(x(ceiling) + (right ? 4 : -4), box.top - 9, `accuracy ceiling ${fixed(ceiling, 3)}`, side);
    const title = node("title", {}, "No invariant model can exceed this accuracy.");
    return [node("rect", shade, title), guide(x(ceiling), box.top - 3, x(ceiling), bottom, { stroke: INK }), words];
  }

  /** One model: from its lowest to its highest possible ECE, with its own as a mark, its name at a height. */
  function interval(model, height) {
    const [at, m] = [place.x(model.accuracy), models.indexOf(model)];
    const [low, high] = [place.y(model.low), place.y(model.high)];
    const drawn = [
      stroke(at, low, at, high, { stroke: model.color, "stroke-width": 8, "stroke-opacity": 0.3 }),
      stroke(at - 6, low, at + 6, low, { stroke: model.color, "stroke-width": 2 }),
      stroke(at - 6, high, at + 6, high, { stroke: model.color, "stroke-width": 2 }),
    ];
    if (!Number.isFinite(model.ece)) return drawn;
    const left = model.accuracy > 0.55;
    const beside = { "text-anchor": left ? "end" : "start", fill: INK };
    return [
      ...drawn,
      marker(m, at, place.y(model.ece), 5.5, model.color, { "stroke-width": 1.5 }),
      haloed(at + (left ? -12 : 12), height, `${model.name} ${fixed(model.ece, 3)}`, beside),
    ];
  }

  attachReadout(frame, (px) => {
    if (!place || !models.length) return null;
    const accuracies = models.map((model) => model.accuracy);
    const model = models[nearestPlace(accuracies, place.x.invert(px))];
    const rows = [
      ["accuracy", fixed(model.accuracy, 3)],
      ["ECE", fixed(model.ece, 3)],
      ["possible ECE", `${fixed(model.low, 3)} to ${fixed(model.high, 3)}`],
    ].map(([name, value]) => ({ name, value }));
    return { head: model.name, rows };
  });

  return {
    set(given) {
      models = (given.models ?? []).map((model) => modelBounds(model, given));
      const spoken = models.map(({ name, accuracy, ece, low, high }) => {
        const [is, from, to, right] = [ece, low, high, accuracy].map((value) => fixed(value, 3));
        return `${name}: ECE ${is} between ${from} and ${to} at accuracy ${right}`;
      });
      frame.root.setAttribute("aria-label", `Bounds of the calibration error: ${spoken.join("; ") || "no data"}`);
      frame.redraw();
    },
    destroy: () => frame.destroy(),
  };
}
