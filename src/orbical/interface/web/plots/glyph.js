/** A small orbit without words, for a list or beside the pointer. */

import { h } from "../core/dom.js";
import { fit, paintPixels, resolve } from "../draw/canvas.js";
import { badToGood, colorOf, isDark } from "../draw/colors.js";
import { paintHeatmap, polarCells } from "../draw/heatmap.js";
import { orbitOf, placeAt } from "../draw/orbits.js";
import { clamp, rangeOf } from "../draw/scales.js";
import { tableOf } from "../draw/tile_table.js";

const DASHES = [[], [3, 1.5], [1, 1.5], [4, 1.5, 1, 1.5]];

/** Make a glyph: `{ element, resize(pixels), set({ models, values, range, ramp, higherIsBetter, mark }) }`. */
export function createGlyph(group, first = 48) {
  const orbit = orbitOf(group);
  const element = document.createElement("canvas");
  element.className = "orbit-glyph";
  element.setAttribute("aria-hidden", "true");
  element.style.display = "block";
  let size = 0;
  function resize(pixels) {
    size = pixels;
    Object.assign(element.style, { width: `${size}px`, height: `${size}px` });
  }
  resize(first);
  return { element, resize, set: (given) => drawGlyph(fit(element, size, size), orbit, size, { ...given, element }) };
}

/**
 * Draw an orbit into a square of a canvas, from its upper left corner on: the `values` of all models, in the
 * colors of the page at `element`, and the position `mark`, an element of the orbit, where one is given.
 */
export function drawGlyph(context, orbit, size, given) {
  const { values, range, higherIsBetter, mark = -1 } = given;
  const [low, high] = range?.every?.(Number.isFinite) && range[1] > range[0] ? range : rangeOf(values);
  const share = (value) => clamp((value - low) / (high - low), 0, 1);
  const draw = { circle, line, ball }[orbit.kind] ?? cells;
  draw(context, orbit, size, { ...given, share, range: badToGood([low, high], higherIsBetter), mark });
}

/** A small ring where the position is. */
function ring(context, x, y, element) {
  for (const [color, width] of [
    ["var(--panel, #ffffff)", 3.5],
    ["var(--ink, #222222)", 1.5],
  ]) {
    context.beginPath();
    context.arc(x, y, 3, 0, 2 * Math.PI);
    context.lineWidth = width;
    context.strokeStyle = resolve(element, color);
    context.stroke();
  }
}

/** A line where the position is. */
function hand(context, from, to, element) {
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.lineWidth = 1.5;
  context.strokeStyle = resolve(element, "var(--ink, #222222)");
  context.stroke();
}

function circle(context, orbit, size, given) {
  const angles = orbit.axes.angle ?? orbit.coords.angle;
  const [middle, radius] = [size / 2, size / 2 - 1.5];
  context.lineWidth = 1;
  context.strokeStyle = resolve(given.element, "var(--line, #d9d9d9)");
  for (const part of [0.5, 1]) {
    context.beginPath();
    context.arc(middle, middle, radius * part, 0, 2 * Math.PI);
    context.stroke();
  }
  curves(
    context,
    orbit,
    given,
    // The lowest value is a small ring: at the center itself it would not be seen.
    (i, value) => placeAt(Number(angles[i]), 2.5 + (radius - 2.5) * given.share(value), middle, middle),
    true,
  );
  const at = orbit.cells[given.mark]?.[0];
  if (at === undefined) return;
  hand(context, [middle, middle], placeAt(Number(angles[at]), radius, middle, middle), given.element);
}

function line(context, orbit, size, given) {
  const last = Math.max(orbit.index.length - 1, 1);
  context.strokeStyle = resolve(given.element, "var(--line, #d9d9d9)");
  context.strokeRect(0.5, 0.5, size - 1, size - 1);
  curves(
    context,
    orbit,
    given,
    (i, value) => [2 + ((size - 4) * i) / last, size - 2 - (size - 4) * given.share(value)],
    false,
  );
  const at = orbit.cells[given.mark]?.[0];
  if (at === undefined) return;
  const x = 2 + ((size - 4) * at) / last;
  hand(context, [x, 1], [x, size - 1], given.element);
}

/** The curve of each model, in its color and its dash. */
function curves(context, orbit, { models, values, element }, at, closed) {
  context.lineWidth = 1.3;
  context.lineJoin = "round";
  models.forEach((model, m) => {
    context.beginPath();
    let pen = false;
    let whole = true;
    orbit.index.forEach((k, i) => {
      const value = values[m * orbit.size + k];
      if (Number.isFinite(value)) context[pen ? "lineTo" : "moveTo"](...at(i, value));
      pen = Number.isFinite(value);
      whole &&= pen;
    });
    if (closed && whole) context.closePath();
    context.setLineDash(DASHES[m % DASHES.length]);
    context.strokeStyle = resolve(element, model.color);
    context.stroke();
  });
  context.setLineDash([]);
}

/** Colored cells of each model: a table, or the discs of three planes. */
function cells(context, orbit, size, { models, values, range, ramp, element, mark }) {
  const pictures = picturesOf(orbit, size, models.length);
  const across = pictures.length > 1 ? pictures.length : Math.ceil(Math.sqrt(models.length));
  const box = Math.min(size / across, size / Math.ceil((models.length * pictures.length) / across));
  const dark = isDark(element);
  context.imageSmoothingEnabled = false;
  models.forEach((_, m) =>
    pictures.forEach((picture, p) => {
      const place = m * pictures.length + p;
      const drawn = h("canvas", {});
      const own = values.subarray(m * orbit.size, (m + 1) * orbit.size);
      paintPixels(drawn, picture.columns, picture.rows, (rgba) =>
        paintHeatmap(rgba, picture.cells, own, range, dark, ramp),
      );
      const scale = Math.min(box / picture.columns, box / picture.rows);
      const [wide, high] = [picture.columns * scale - 1, picture.rows * scale - 1];
      const [x, y] = [(place % across) * box, Math.floor(place / across) * box];
      const [left, top] = [x + (box - wide) / 2, y + (box - high) / 2];
      context.drawImage(drawn, left, top, wide, high);
      const at = middleOf(picture, mark);
      if (at) ring(context, left + at[0] * wide, top + at[1] * high, element);
    }),
  );
}

/** Where an element stands in a picture, from 0 to 1 to the right and down; none where it is not shown. */
function middleOf({ rows, columns, cells: shown }, element) {
  let [x, y, count] = [0, 0, 0];
  for (let i = 0; element >= 0 && i < shown.length; i += 1) {
    if (shown[i] !== element) continue;
    x += (i % columns) + 0.5;
    y += Math.floor(i / columns) + 0.5;
    count += 1;
  }
  return count ? [x / count / columns, y / count / rows] : null;
}

/** Which element each pixel of a glyph shows, in one picture or, of slices, in three. */
function picturesOf(orbit, size, models) {
  if (orbit.kind === "plane") return [{ rows: orbit.shape[0], columns: orbit.shape[1], cells: orbit.index }];
  const shape = orbit.kind === "ball" ? [1, orbit.size] : orbit.shape;
  if (orbit.kind !== "slices") return [tableOf(orbit.index, shape, orbit.coords)];
  const [planes, azimuths, angles] = orbit.shape;
  const side = Math.max(Math.round((2 * size) / Math.max(planes, models)), 8);
  return Array.from({ length: planes }, (_, p) => ({
    rows: side,
    columns: side,
    cells: polarCells(
      side,
      orbit.axes.azimuth,
      orbit.axes.angle,
      (a, r) => orbit.index[(p * azimuths + a) * angles + r],
    ),
  }));
}

/** Rotation vectors seen from above, those near the plane on top; the first model alone. */
function ball(context, orbit, size, { values, range, ramp, element, mark }) {
  const { rx, ry, rz } = orbit.coords;
  const order = [...orbit.index].sort((a, b) => Math.abs(rz[b]) - Math.abs(rz[a]));
  for (const k of order) {
    context.beginPath();
    context.arc(size * (0.5 + rx[k] / 390), size * (0.5 - ry[k] / 390), Math.max(size / 34, 1.2), 0, 2 * Math.PI);
    context.globalAlpha = Math.max(1 - Math.abs(rz[k]) / 180, 0.15);
    context.fillStyle = colorOf(values[k], range, isDark(element), ramp);
    context.fill();
  }
  context.globalAlpha = 1;
  if (mark >= 0) ring(context, size * (0.5 + rx[mark] / 390), size * (0.5 - ry[mark] / 390), element);
}
