/** The part of the plane that a scatter plot shows: one scale for both directions. */

import { clamp } from "./scales.js";

const MOST = 400;

/** Show all of `bounds` `[left, low, right, high]` in a box of pixels, with a margin. */
export function wholeView([left, low, right, high], width, height, margin = 14) {
  const [w, h] = [Math.max(right - left, 1e-6), Math.max(high - low, 1e-6)];
  const unit = Math.max(Math.min((width - 2 * margin) / w, (height - 2 * margin) / h), 1e-6);
  return { unit, zoom: 1, x: (left + right) / 2, y: (low + high) / 2, width, height };
}

/** From a place of the data to pixels; upwards is upwards. */
export function toPixels(view, x, y) {
  const k = view.unit * view.zoom;
  return [view.width / 2 + (x - view.x) * k, view.height / 2 - (y - view.y) * k];
}

/** From pixels to a place of the data. */
export function toData(view, px, py) {
  const k = view.unit * view.zoom;
  return [view.x + (px - view.width / 2) / k, view.y - (py - view.height / 2) / k];
}

/** Zoom by a factor and keep the place under the pointer where it is. */
export function zoomed(view, factor, px, py) {
  const zoom = clamp(view.zoom * factor, 1, MOST);
  const [x, y] = toData(view, px, py);
  const [nx, ny] = toData({ ...view, zoom }, px, py);
  return { ...view, zoom, x: view.x + x - nx, y: view.y + y - ny };
}

/** Move the view by pixels. */
export function panned(view, dx, dy) {
  const k = view.unit * view.zoom;
  return { ...view, x: view.x - dx / k, y: view.y + dy / k };
}

/** The view as numbers per axis: pixels = data * scale + offset. */
export function affine(view) {
  const k = view.unit * view.zoom;
  return { scale: [k, -k], offset: [view.width / 2 - view.x * k, view.height / 2 + view.y * k] };
}
