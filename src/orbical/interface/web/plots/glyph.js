/** A small orbit without words, for a list or beside the pointer. */

import { fit, resolve } from "../draw/canvas.js";
import { isDark } from "../draw/colours.js";
import { heat } from "../draw/heat.js";
import { orbitOf, placeAt } from "../draw/orbits.js";
import { clamp, rangeOf } from "../draw/scales.js";
import { tableOf } from "../draw/tables.js";

const DASHES = [[], [3, 1.5], [1, 1.5], [4, 1.5, 1, 1.5]];

/** Make a glyph of `size` pixels: `{ element, set({ models, values, range }) }`. */
export function createGlyph(group, size = 48) {
  const orbit = orbitOf(group);
  const element = document.createElement("canvas");
  element.className = "orbit-glyph";
  element.setAttribute("aria-hidden", "true");
  Object.assign(element.style, { width: `${size}px`, height: `${size}px`, display: "block" });
  const draw = { circle, line }[orbit.kind] ?? cells;
  return {
    element,
    set({ models, values, range }) {
      const [low, high] = range?.every?.(Number.isFinite) && range[1] > range[0] ? range : rangeOf(values);
      const context = fit(element, size, size);
      const share = (value) => clamp((value - low) / (high - low), 0, 1);
      draw(context, orbit, size, { models, values, share, range: [low, high], element });
    },
  };
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
  curves(context, orbit, given, (i, value) => placeAt(Number(angles[i]), radius * given.share(value), middle, middle), true);
}

function line(context, orbit, size, given) {
  const last = Math.max(orbit.index.length - 1, 1);
  context.strokeStyle = resolve(given.element, "var(--line, #d9d9d9)");
  context.strokeRect(0.5, 0.5, size - 1, size - 1);
  curves(context, orbit, given, (i, value) => [2 + ((size - 4) * i) / last, size - 2 - (size - 4) * given.share(value)], false);
}

/** The curve of each model, in its colour and its dash. */
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
    context.strokeStyle = resolve(element, model.colour);
    context.stroke();
  });
  context.setLineDash([]);
}

/** Coloured cells of the models side by side, in a table as square as can be. */
function cells(context, orbit, size, { models, values, range, element }) {
  const table = shown(orbit);
  const across = Math.ceil(Math.sqrt(models.length));
  const box = size / across;
  const picture = document.createElement("canvas");
  Object.assign(picture, { width: table.columns, height: table.rows });
  const brush = picture.getContext("2d");
  const pixels = brush.createImageData(table.columns, table.rows);
  context.imageSmoothingEnabled = false;
  models.forEach((_, m) => {
    heat(pixels.data, table.cells, values.subarray(m * orbit.size, (m + 1) * orbit.size), range, isDark(element));
    brush.putImageData(pixels, 0, 0);
    const scale = Math.min(box / table.columns, box / table.rows);
    const [wide, high] = [table.columns * scale - 1, table.rows * scale - 1];
    const [x, y] = [(m % across) * box, Math.floor(m / across) * box];
    context.drawImage(picture, x + (box - wide) / 2, y + (box - high) / 2, wide, high);
  });
}

function shown(orbit) {
  if (orbit.kind === "plane") return { rows: orbit.shape[0], columns: orbit.shape[1], cells: orbit.index };
  if (orbit.kind === "slices") return { rows: orbit.shape[0] * orbit.shape[2], columns: orbit.shape[1], cells: byAngle(orbit) };
  return tableOf(orbit.index, orbit.kind === "ball" ? [1, orbit.size] : orbit.shape);
}

/** Slices unrolled: planes below each other, azimuth across, angle down. */
function byAngle({ index, shape: [planes, azimuths, angles] }) {
  return Int32Array.from(index, (_, i) => {
    const [row, azimuth] = [Math.floor(i / azimuths), i % azimuths];
    const [plane, angle] = [Math.floor(row / angles) % planes, row % angles];
    return index[(plane * azimuths + azimuth) * angles + angle];
  });
}
