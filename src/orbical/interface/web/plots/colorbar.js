/** The key of colors: a bar with ticks, and what the numbers are. */

import { colorOf } from "../draw/colors.js";
import { short } from "../draw/format.js";
import { linear, ticks } from "../draw/scales.js";
import { INK, SOFT, fitted, label, node, round, stroke, textWidth } from "../draw/svg.js";

const [WIDE, ROW, MOST] = [12, 14, 3];

/** What the numbers are, in several lines where one is longer than there is room; the last one is cut. */
export function barWords(title, better, room) {
  const lines = [];
  for (const word of title.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && textWidth(longer) > room && lines.length < MOST) lines.push(word);
    else lines[Math.max(lines.length - 1, 0)] = longer;
  }
  return [...lines, better].filter(Boolean);
}

/** The room that a bar with its words needs; `lines` are what the numbers are. */
export function barWidth(range, lines) {
  return WIDE + 14 + tickWidth(range) + ROW * lines.length;
}

function tickWidth(range) {
  return Math.ceil(Math.max(...ticks(...range, 5).map((value) => textWidth(short(value))), 8));
}

/**
 * Draw the bar with its left edge at `x`, and its words in the `room` beside it; returns its elements. `shades` is the
 * range from bad to good, `ramp` the kind of colors; `beyond` says at which ends values lie outside.
 */
export function colorBar(
  { x, y: top, height, room },
  range,
  dark,
  lines,
  { shades = range, ramp = "sequential", beyond = [false, false] } = {},
) {
  const y = linear(range, [top + height, top]);
  const steps = Math.min(Math.ceil(height), 64);
  const drawn = [];
  for (let k = 0; k < steps; k += 1) {
    const high = height / steps;
    // A little overlap, so that no hairline shows between the steps.
    const place = {
      x: round(x),
      y: round(top + height - (k + 1) * high),
      width: WIDE,
      height: round(high + (k ? 0.6 : 0)),
    };
    const value = range[0] + ((k + 0.5) / steps) * (range[1] - range[0]);
    drawn.push(node("rect", { ...place, fill: colorOf(value, shades, dark, ramp) }));
  }
  // An arrow at an end beyond which there are values.
  const tips = [`M${x} ${top + height}h${WIDE}l${-WIDE / 2} 7z`, `M${x} ${top}h${WIDE}l${-WIDE / 2} -7z`];
  tips.forEach((d, k) => {
    if (!beyond[k]) return;
    const tip = node("path", { d, class: "beyond", fill: colorOf(range[k], shades, dark, ramp) });
    tip.append(node("title", {}, `some values are ${k ? "above" : "below"} ${short(range[k])}`));
    drawn.push(tip);
  });
  const values = ticks(...range, height > 120 ? 5 : 2);
  for (const value of values) {
    drawn.push(stroke(x + WIDE, y(value), x + WIDE + 4, y(value), { stroke: SOFT }));
    drawn.push(label(x + WIDE + 7, y(value), short(value), { "text-anchor": "start" }));
  }
  lines.forEach((line, k) => {
    const [tx, ty] = [round(x + WIDE + 16 + tickWidth(range) + ROW * k), round(top + height / 2)];
    const words = label(tx, ty, fitted(line, room), {
      fill: line.startsWith("(") ? SOFT : INK,
      transform: `rotate(-90 ${tx} ${ty})`,
    });
    words.append(node("title", {}, line));
    drawn.push(words);
  });
  return drawn;
}
