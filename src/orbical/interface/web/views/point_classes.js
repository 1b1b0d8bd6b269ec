// The points of a cloud in the colors of their classes, side by side: the truth, and each model's answer.

import { fill, h, write } from "../core/dom.js";
import { fit } from "../draw/canvas.js";
import { classColor } from "../draw/colors.js";
import { keep } from "../draw/format.js";
import { spoken } from "./maps.js";
import { counted, HOME, lookFrom, projected, radiusOf } from "./points.js";
import { chip, createBoard } from "./tile.js";

/** @import { Field, ViewContent } from "./index.js" */

const MOST_CLASSES = 12;
const SCORES = {
  truth: [
    ["score", "right points"],
    ["mean_iou", "mean IoU"],
  ],
  consensus: "agreement with the consensus",
};

/** The classes of one model out of [models, points], in the order of the points that count. */
export function classesOf(/** @type {Field} */ { data, shape }, model, mask) {
  const count = shape[shape.length - 1];
  const start = data.length > count ? model * count : 0;
  return Array.from(data.subarray(start, start + count)).filter((_, i) => (mask ? mask.data[i] : true));
}

/** What is shown: the reference if it is known, then each model. */
export function panelsOf(
  /** @type {ViewContent} */ { fields, inputs, truths, consensus, models, colors, byConsensus },
) {
  const mask = inputs?.mask;
  const still = byConsensus ? (consensus?.moved ?? consensus?.answer) : (truths?.moved ?? truths?.still);
  const first = still ? [{ title: byConsensus ? "consensus" : "truth", kinds: classesOf(still, 0, mask) }] : [];
  const kinds = (m) => classesOf(fields.point_class, m, mask);
  return [...first, ...models.map((title, m) => ({ title, color: colors[m], kinds: kinds(m) }))];
}

/** The view. */
export function createView(el, state) {
  const board = createBoard(el, "maps", draw, show);
  const key = h("p", { class: "view-note key" });
  el.append(key);
  /** @type {ViewContent | null} */
  let given = null;
  let points = [];

  function draw() {
    if (!given) return;
    const pos = given.inputs?.pos ?? given.inputs?.points;
    if (!pos || !given.fields.point_class) {
      return write(key, `No points are stored. Pass the models, or scan with ${keep(state, "inputs")}.`);
    }
    const panels = panelsOf(given);
    points = counted(pos, given.inputs?.mask);
    board.show(panels);
    board.el.setAttribute("aria-label", spoken(given, SCORES).join("; "));
    const seen = [...new Set(panels.flatMap(({ kinds }) => kinds))].filter((kind) => kind >= 0).sort((a, b) => a - b);
    const names = state.task?.classes ?? [];
    const some = seen.slice(0, MOST_CLASSES);
    fill(
      key,
      some.map((kind) => chip(classColor(kind, board.dark()), names[kind] ?? `class ${kind}`)),
    );
  }

  function show({ title, kinds }, { canvas, side }) {
    canvas.setAttribute("aria-label", `classes of points: ${title}`);
    paint(fit(canvas, side, side), points, kinds, side, board.dark());
  }

  function set(/** @type {ViewContent} */ content) {
    given = content;
    draw();
  }

  return { set, destroy: board.destroy };
}

/** Dots in the colors of their classes, far ones first; a point without a class is hollow. */
function paint(context, points, kinds, side, dark) {
  const dot = Math.min(Math.max(side / Math.sqrt(points.length + 1) / 2.5, 1.5), 6);
  for (const [x, y, depth, i] of projected(points, lookFrom(HOME), side, radiusOf(points))) {
    const size = dot * (1 + 0.35 * depth);
    context.fillStyle = context.strokeStyle = kinds[i] >= 0 ? classColor(kinds[i], dark) : "#888888";
    context.globalAlpha = 0.7 + 0.3 * depth;
    if (kinds[i] >= 0) context.fillRect(x - size / 2, y - size / 2, size, size);
    else context.strokeRect(x - size / 2, y - size / 2, size, size);
  }
  context.globalAlpha = 1;
}
