/** How many samples each bin holds, as bars side by side below a diagram. */

import { count as counted } from "../draw/format.js";
import { linear } from "../draw/scales.js";
import { label, node, round } from "../draw/svg.js";
import { axes, ticksFor } from "./axes.js";

/** A rectangle between two corners. */
export function bar(left, top, right, bottom, look) {
  const place = { x: round(left), y: round(top), width: round(right - left), height: round(bottom - top) };
  return node("rect", { ...place, ...look });
}

/** The bars of all models, `strip` pixels high, standing on `base`. */
export function countBars({ box, strip, base, x }, { models, count, edges }) {
  const bins = edges.length - 1;
  const most = Math.max(1, ...count.slice(0, models.length * bins));
  const tall = linear([0, most], [0, strip]);
  const drawn = [];
  models.forEach((model, m) => {
    for (let b = 0; b < bins; b += 1) {
      const [left, right] = [x(edges[b]) + 1, x(edges[b + 1]) - 1];
      const [wide, high] = [(right - left) / models.length, tall(count[m * bins + b])];
      const start = left + m * wide;
      if (high > 0)
        drawn.push(bar(start, base - high, start + wide, base, { fill: model.color, "fill-opacity": 0.75 }));
    }
  });
  const lower = { left: box.left, top: base - strip, width: box.width, height: strip };
  const xTicks = ticksFor([0, 1], box.width, 36);
  const bottom = axes(lower, { x, y: tall, grid: false, yTicks: [], xTicks, xName: "confidence" });
  const top = label(box.left - 6, base - strip + 5, counted(most), { "text-anchor": "end" });
  top.append(node("title", {}, "largest number of samples in a bin"));
  return [bottom, ...drawn, top];
}
