/** Two straight axes with round ticks and their names. */
import { count as counted, short } from "../draw/format.js";
import { linear, ticks } from "../draw/scales.js";
import { fitted, INK, label, node, round, SOFT, stroke, textWidth } from "../draw/svg.js";

/** The room inside of a frame for axes with names and tick labels. */
export function axesBox(frame, { top = 8, right = 12, yTicks = ["0.00"], yName = true, xName = true } = {}) {
  const wide = Math.max(...yTicks.map((words) => textWidth(words)));
  const left = Math.ceil(wide) + 10 + (yName ? 16 : 0);
  const bottom = 20 + (xName ? 16 : 0);
  const [width, height] = [frame.width - left - right, frame.height - top - bottom];
  return { left, top, width: Math.max(width, 10), height: Math.max(height, 10) };
}

/** Ticks for a length in pixels: fewer where there is little room. */
export function ticksFor(/** @type {number[]} */ [low, high], pixels, each) {
  return ticks(low, high, Math.max(Math.min(Math.floor(pixels / each), 5), 1));
}

/** Grid, ticks and names: `x` and `y` are scales in pixels, `xTicks` and `yTicks` values. */
export function axes(box, { x, y, xTicks, yTicks, xName = "", yName = "", write = short, grid = true }) {
  const { left, top, width, height } = box;
  const [right, bottom] = [left + width, top + height];
  const drawn = node("g");
  for (const value of yTicks) {
    if (grid) drawn.append(stroke(left, y(value), right, y(value)));
    drawn.append(label(left - 6, y(value), write(value), { "text-anchor": "end" }));
  }
  for (const value of xTicks) {
    if (grid) drawn.append(stroke(x(value), top, x(value), bottom));
    else drawn.append(stroke(x(value), bottom, x(value), bottom + 4, { stroke: SOFT }));
    drawn.append(label(x(value), bottom + 11, write(value)));
  }
  drawn.append(stroke(left, bottom, right, bottom, { stroke: SOFT }));
  drawn.append(stroke(left, top, left, bottom, { stroke: SOFT }));
  if (xName) drawn.append(named(left + width / 2, bottom + 27, xName, width + left));
  if (yName) {
    const middle = top + height / 2;
    const words = named(9, middle, yName, height + 20);
    words.setAttribute("transform", `rotate(-90 9 ${middle})`);
    drawn.append(words);
  }
  return drawn;
}

function named(x, y, words, room) {
  const text = label(x, y, fitted(words, room), { fill: INK });
  text.append(node("title", {}, words));
  return text;
}

/** A dashed line of what would be ideal. */
export function guide(x1, y1, x2, y2, attributes = {}) {
  return stroke(x1, y1, x2, y2, { stroke: SOFT, "stroke-dasharray": "5 4", ...attributes });
}

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
        drawn.push(
          bar(start, base - high, start + wide, base, { fill: model.color, "fill-opacity": 0.75, "data-count": "" }),
        );
    }
  });
  const lower = { left: box.left, top: base - strip, width: box.width, height: strip };
  const xTicks = ticksFor([0, 1], box.width, 36);
  const bottom = axes(lower, { x, y: tall, grid: false, yTicks: [], xTicks, xName: "confidence" });
  const top = label(box.left - 6, base - strip + 5, counted(most), { "text-anchor": "end" });
  top.append(node("title", {}, "largest number of samples in a bin"));
  return [bottom, ...drawn, top];
}
