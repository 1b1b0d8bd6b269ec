/** Where a readout stands so that it stays inside of its plot and off the pointer. */

import { clamp } from "./scales.js";

/** The corner of a box of `size` beside a place: right, left, below or above of it, within `room`. */
export function besidePointer(
  /** @type {number[]} */ [x, y],
  /** @type {number[]} */ [wide, high],
  /** @type {number[]} */ [width, height],
  gap = 14,
) {
  const level = clamp(y + gap, 0, Math.max(height - high, 0));
  if (x + gap + wide <= width) return [x + gap, level];
  if (x - gap - wide >= 0) return [x - gap - wide, level];
  const left = clamp(x - wide / 2, 0, Math.max(width - wide, 0));
  if (y + gap + high <= height) return [left, y + gap];
  return [left, Math.max(y - gap - high, 0)];
}
