// Vector fields side by side: the truth and each model's answer as arrows, over the map of its error.

import { h, write } from "../core/dom.js";
import { fit, resolve } from "../draw/canvas.js";
import { badToGood, colorOf } from "../draw/colors.js";
import { fixed } from "../draw/format.js";
import { colorRange } from "../draw/scales.js";
import { mapOf } from "./maps.js";
import { createBoard } from "./tile.js";

/** @import { ViewContent } from "./index.js" */

const ROOMY = 11; // pixels a cell needs so that each has its own arrow

/** A field [2, rows, columns] out of [models, 2, rows, columns]. */
export function fieldOf(array, model) {
  const shape = array.shape.slice(-3);
  const size = shape[0] * shape[1] * shape[2];
  const start = array.shape.length > 3 ? model * size : 0;
  return { data: array.data.subarray(start, start + size), shape };
}

/** Means over blocks of `step` cells; missing cells do not count. */
export function thinned({ data, shape }, step) {
  const [axes, rows, columns] = shape;
  const [down, across] = [Math.ceil(rows / step), Math.ceil(columns / step)];
  const means = new Float32Array(axes * down * across);
  for (let a = 0; a < axes; a += 1) {
    for (let row = 0; row < down; row += 1) {
      for (let column = 0; column < across; column += 1) {
        let [sum, count] = [0, 0];
        for (let r = row * step; r < Math.min(rows, (row + 1) * step); r += 1) {
          for (let c = column * step; c < Math.min(columns, (column + 1) * step); c += 1) {
            const value = data[(a * rows + r) * columns + c];
            if (Number.isFinite(value)) [sum, count] = [sum + value, count + 1];
          }
        }
        means[(a * down + row) * across + column] = count ? sum / count : NaN;
      }
    }
  }
  return { data: means, shape: [axes, down, across] };
}

/** How long the vectors of a field are. */
export function lengths({ data }) {
  const half = data.length / 2;
  return Float64Array.from({ length: half }, (_, i) => Math.hypot(data[i], data[half + i]));
}

/** Arrows `[x0, y0, x1, y1]` in cells, centered on their cells; one of `most` is `reach` cells long, and none is longer. */
export function arrows({ data, shape }, most, reach = 1.3) {
  const [, rows, columns] = shape;
  const plane = rows * columns;
  const unit = most > 0 ? reach / most : 0;
  const made = [];
  for (let i = 0; i < plane; i += 1) {
    const length = Math.hypot(data[i], data[plane + i]) * unit;
    const cut = length > reach ? reach / length : 1;
    const [dx, dy] = [data[i] * unit * cut, data[plane + i] * unit * cut];
    if (!Number.isFinite(dx) || !Number.isFinite(dy)) continue;
    const [x, y] = [(i % columns) + 0.5, Math.floor(i / columns) + 0.5];
    made.push([x - dx / 2, y - dy / 2, x + dx / 2, y + dy / 2]);
  }
  return made;
}

/** The view. A click on a field shows it alone, another click shows all again. */
export function createView(el) {
  const board = createBoard(el, "quivers", draw, show);
  const note = h("p", { class: "view-note" });
  const strip = h("canvas", { "aria-hidden": "true" });
  const words = h("span", {});
  el.append(h("p", { class: "view-note key" }, strip, words), note);
  let given = null;
  let kept = { sample: null, error: 0, speed: 0 };

  /** One scale for the whole orbit of a sample: colors and arrows must not jump as it moves. */
  function steady(sample, error, speed) {
    if (kept.sample !== sample) kept = { sample, error: 0, speed: 0 };
    kept = { sample, error: Math.max(kept.error, error), speed: Math.max(kept.speed, speed) };
    return kept;
  }

  /** What is compared with: the truth, or the consensus of the first model. */
  function referenceOf(/** @type {ViewContent} */ { fields, consensus = {}, byConsensus, models }) {
    if (fields.truth_map && !byConsensus) return [panelOf("truth", fieldOf(fields.truth_map, 0))];
    if (consensus.moved?.shape.length !== 4) return [];
    return [panelOf(`consensus of ${models[0]}`, fieldOf(consensus.moved, 0))];
  }

  function panelsOf(content) {
    const { fields, models, colors, byConsensus, byBoth } = content;
    const flow = fields.flow_map ?? fields.flow;
    const shown = byConsensus
      ? [["score_vs_consensus", 3, " px"]]
      : [
          ["score", 3, " px"],
          ["angular_error", 1, "°"],
          ...(byBoth ? [["score_vs_consensus", 3, " px from the consensus"]] : []),
        ];
    const said = (m) =>
      shown
        .map(([name, digits, unit]) => [fields[name]?.data[m], digits, unit])
        .filter(([value]) => Number.isFinite(value));
    return [
      ...referenceOf(content),
      ...models.map((title, m) => ({
        ...panelOf(title, fieldOf(flow, m)),
        color: colors[m],
        error: fields.error_map && !byConsensus ? mapOf(fields.error_map, m) : null, // it is against the truth
        words: said(m)
          .map(([value, digits, unit]) => `${fixed(value, digits)}${unit}`)
          .join(", "),
      })),
    ];
  }

  function draw() {
    if (!given) return;
    const panels = panelsOf(given);
    const errors = panels.filter((panel) => panel.error).map((panel) => panel.error.data);
    const speeds = panels.map((panel) => lengths(panel.field));
    const scale = (kept = steady(given.place.sample, colorRange(errors)[1], colorRange(speeds)[1]));
    board.show(panels);
    legend(
      scale,
      errors.length > 0,
      errors.some((row) => row.some((error) => error > scale.error)),
    );
    const spoken = panels
      .filter((panel) => panel.words && panel.color)
      .map((panel) => `${panel.title}: ${panel.words}`);
    board.el.setAttribute("aria-label", spoken.join("; "));
    write(note, given.fields.flow_map || given.fields.flow ? "" : "No flow stored at this position.");
  }

  function show(panel, { canvas, caption, side, alone }) {
    canvas.setAttribute("aria-label", `flow of ${panel.title} ${panel.words}`);
    const value = caption.querySelector("b") ?? caption.appendChild(h("b", {}));
    write(value, alone && panel.words ? ` ${panel.words}` : "");
    paint(canvas, panel, side, kept);
  }

  function paint(canvas, panel, side, scale) {
    const context = fit(canvas, side, side);
    const step = Math.max(1, Math.ceil(ROOMY / (side / panel.field.shape[1])));
    const field = thinned(panel.field, step);
    const cell = side / field.shape[1];
    if (panel.error) heat(context, panel.error, side, badToGood([0, scale.error], false), board.dark());
    else {
      context.fillStyle = resolve(el, "var(--hover, #eef1f4)");
      context.fillRect(0, 0, side, side);
    }
    const lines = arrows(field, scale.speed).map((line) => line.map((place) => place * cell));
    const width = Math.min(Math.max(side / 160, 0.9), 2);
    // A dark line in a light rim is seen on every color of the map.
    for (const [color, wide] of panel.error
      ? [
          ["rgb(255 255 255 / 55%)", width + 1.6],
          ["#111111", width],
        ]
      : [[resolve(el, "var(--ink, #222222)"), width]]) {
      context.strokeStyle = color;
      context.lineWidth = wide;
      context.lineCap = "round";
      context.beginPath();
      for (const line of lines) arrowPath(context, line, Math.min(cell * 0.32, 5));
      context.stroke();
    }
  }

  function legend({ error, speed }, colored, beyond) {
    const context = fit(strip, 40, 8);
    for (let i = 0; i < 40; i += 1) {
      context.fillStyle = colorOf(i, badToGood([0, 39], false), board.dark());
      context.fillRect(i, 0, 1.5, 8);
    }
    strip.hidden = !colored;
    write(
      words,
      `${colored ? `error 0 to ${fixed(error, error < 1 ? 2 : 1)} px${beyond ? " and more" : ""}, ` : ""}longest arrow ${fixed(speed, 1)} px`,
    );
  }

  function set(/** @type {ViewContent} */ content) {
    given = content;
    draw();
  }

  return { set, destroy: board.destroy };
}

const panelOf = (title, field) => ({ title, field, words: "" });

function heat(context, { data, rows, columns }, side, range, dark) {
  const [wide, high] = [side / columns, side / rows];
  for (let i = 0; i < data.length; i += 1) {
    context.fillStyle = colorOf(data[i], range, dark);
    context.fillRect((i % columns) * wide, Math.floor(i / columns) * high, wide + 0.5, high + 0.5);
  }
}

function arrowPath(context, /** @type {number[]} */ [x0, y0, x1, y1], head) {
  const length = Math.hypot(x1 - x0, y1 - y0);
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  if (length < 2) return;
  const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
  const size = Math.min(head, length * 0.6);
  for (const side of [-1, 1]) {
    context.moveTo(x1, y1);
    context.lineTo(x1 - size * (ux + 0.55 * side * uy), y1 - size * (uy - 0.55 * side * ux));
  }
}
