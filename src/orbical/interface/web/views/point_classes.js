// The points of a cloud in the colors of their classes, side by side: the truth, and each model's answer.

import { fill, h, write } from "../core/dom.js";
import { fit, onAppearance } from "../draw/canvas.js";
import { classColor, isDark } from "../draw/colors.js";
import { sideOf, spoken } from "./maps.js";
import { counted, HOME, lookFrom, projected, radiusOf } from "./points.js";
import { tileCaption } from "./tile.js";

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
  const answers = models.map((title, m) => ({
    title,
    color: colors[m],
    kinds: classesOf(fields.point_class, m, mask),
  }));
  return [...first, ...answers];
}

/** The view. */
export function createView(el, state) {
  const board = h("div", { class: "maps" });
  const key = h("p", { class: "view-note" });
  Object.assign(board.style, {
    flex: "1",
    minHeight: "0",
    display: "grid",
    gap: "5px",
    justifyContent: "center",
    alignContent: "center",
    overflow: "auto",
  });
  Object.assign(key.style, { display: "flex", flexWrap: "wrap", gap: "2px 8px", fontSize: "11px" });
  el.append(board, key);
  const stop = new AbortController();
  /** @type {ViewContent | null} */
  let given = null;

  function draw() {
    if (!given) return;
    const pos = given.inputs?.pos ?? given.inputs?.points;
    if (!pos || !given.fields.point_class) {
      return write(key, "No points stored: scan with keep='inputs', or pass the models.");
    }
    const panels = panelsOf(given);
    const points = counted(pos, given.inputs?.mask);
    const box = board.getBoundingClientRect();
    const [width, height] = [box.width || 300, Math.max(box.height || 160, 90)];
    const table = (columns) => sideOf(columns, Math.ceil(panels.length / columns), width, height);
    const columns = panels.reduce((best, _, i) => (table(i + 1) > table(best) ? i + 1 : best), 1);
    const side = table(columns);
    board.style.gridTemplateColumns = `repeat(${columns}, ${side}px)`;
    const dark = isDark(el);
    fill(
      board,
      panels.map(({ title, color, kinds }) => {
        const canvas = h("canvas", { role: "img", "aria-label": `classes of points: ${title}` });
        paint(fit(canvas, side, side), points, kinds, side, dark);
        return h("div", {}, tileCaption(title, side, color), canvas);
      }),
    );
    board.setAttribute("aria-label", spoken(given, SCORES).join("; "));
    const seen = [...new Set(panels.flatMap(({ kinds }) => kinds))].filter((kind) => kind >= 0).sort((a, b) => a - b);
    const names = state.task?.classes ?? [];
    fill(key, [
      ...seen.slice(0, MOST_CLASSES).map((kind) => chip(classColor(kind, dark), names[kind] ?? `class ${kind}`)),
      h("span", {}, spoken(given, SCORES).join(" · ")),
    ]);
  }

  const watch = new ResizeObserver(draw);
  watch.observe(board);
  onAppearance(draw, stop.signal);
  return {
    set(/** @type {ViewContent} */ content) {
      given = content;
      draw();
    },
    destroy() {
      stop.abort();
      watch.disconnect();
      el.replaceChildren();
    },
  };
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

function chip(background, words) {
  const mark = h("i", {});
  Object.assign(mark.style, { display: "inline-block", width: "9px", height: "9px", marginRight: "4px", background });
  return h("span", {}, mark, String(words));
}
