/** The key of colors: a bar with ticks, and what the numbers are. */

import { ramp } from "../draw/colors.js";
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

/** Draw the bar with its left edge at `x`, and its words in the `room` beside it; returns its elements. */
export function colorBar({ x, y: top, height, room }, range, dark, lines) {
  const y = linear(range, [top + height, top]);
  const table = ramp("sequential", dark);
  const steps = Math.min(Math.ceil(height), 128);
  const drawn = [];
  for (let k = 0; k < steps; k += 1) {
    const at = 3 * Math.round(((k + 0.5) / steps) * 255);
    const high = height / steps;
    // A little overlap, so that no hairline shows between the steps.
    const place = {
      x: round(x),
      y: round(top + height - (k + 1) * high),
      width: WIDE,
      height: round(high + (k ? 0.6 : 0)),
    };
    drawn.push(node("rect", { ...place, fill: `rgb(${table[at]}, ${table[at + 1]}, ${table[at + 2]})` }));
  }
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
