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

/** The room that a bar with its words needs beside panels; `lines` are what the numbers are. */
export function barWidth(range, lines) {
  return WIDE + 14 + tickWidth(range) + ROW * lines.length;
}

/** The room that it needs below them. */
export function barHeight(lines) {
  return WIDE + 24 + ROW * lines.length;
}

function tickWidth(range) {
  return Math.ceil(Math.max(...ticks(...range, 5).map((value) => textWidth(short(value))), 8));
}

/**
 * Draw the bar from its upper left corner on, upward or `across`, `length` long, and its words in the `room` beside it;
 * returns its elements. `shades` is the range from bad to good, `ramp` the kind of colors; `beyond` says at which ends
 * values lie outside.
 */
export function colorBar(
  { x, y, length, room, across },
  range,
  dark,
  lines,
  { shades = range, ramp = "sequential", beyond = [false, false] } = {},
) {
  /** A place by how far it lies along the bar and aside of it. */
  const place = (along, aside) => (across ? [x + along, y + aside] : [x + aside, y + length - along]);
  const along = linear(range, [0, length]);
  const steps = Math.min(Math.ceil(length), 64);
  const drawn = [];
  for (let k = 0; k < steps; k += 1) {
    const long = length / steps;
    const more = k ? 0.6 : 0; // a little overlap, so that no hairline shows between the steps
    const [left, top] = across ? place(k * long - more, 0) : place((k + 1) * long, 0);
    const [width, height] = across ? [long + more, WIDE] : [WIDE, long + more];
    const value = range[0] + ((k + 0.5) / steps) * (range[1] - range[0]);
    const box = { x: round(left), y: round(top), width: round(width), height: round(height) };
    drawn.push(node("rect", { ...box, fill: colorOf(value, shades, dark, ramp) }));
  }
  drawn.push(...tips(place, length, range, beyond, (value) => colorOf(value, shades, dark, ramp)));
  for (const value of ticks(...range, length > 120 ? 5 : 2)) {
    const at = along(value);
    drawn.push(stroke(...place(at, WIDE), ...place(at, WIDE + 4), { stroke: SOFT }));
    const anchor = across ? "middle" : "start";
    drawn.push(label(...place(at, WIDE + (across ? 11 : 7)), short(value), { "text-anchor": anchor }));
  }
  const first = WIDE + (across ? 26 : 16 + tickWidth(range));
  lines.forEach((line, k) => {
    const [tx, ty] = place(length / 2, first + ROW * k).map(round);
    const words = label(tx, ty, fitted(line, room), {
      fill: line.startsWith("(") ? SOFT : INK,
      transform: across ? null : `rotate(-90 ${tx} ${ty})`,
    });
    words.append(node("title", {}, line));
    drawn.push(words);
  });
  return drawn;
}

/** An arrow at an end beyond which there are values. */
function tips(place, length, range, beyond, colored) {
  const ends = [
    [0, -7],
    [length, length + 7],
  ];
  return ends.flatMap(([end, out], k) => {
    if (!beyond[k]) return [];
    const corners = [place(end, 0), place(end, WIDE), place(out, WIDE / 2)].map((corner) =>
      corner.map(round).join(" "),
    );
    const tip = node("path", { d: `M${corners.join("L")}Z`, class: "beyond", fill: colored(range[k]) });
    tip.append(node("title", {}, `some values are ${k ? "above" : "below"} ${short(range[k])}`));
    return [tip];
  });
}
