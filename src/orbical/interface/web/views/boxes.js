// Detections on the larger image: the field of view, boxes of all models, truth and consensus, and a table.

import { fill, h, write } from "../core/dom.js";
import { paintPixels } from "../draw/canvas.js";
import { modelInk } from "../draw/colors.js";
import { fixed } from "../draw/format.js";
import { node } from "../draw/svg.js";
import { pixels, valueRange } from "./image.js";

/** @import { Field, ViewContent } from "./index.js" */

const HEADS = [
  ["model", "model"],
  ["class", "class of the box"],
  ["conf.", "confidence"],
  ["IoU", "intersection over union with the key object"],
  ["IoU c.", "intersection over union with the model's own consensus"],
  ["✓", "correct or not"],
];
const MOST = 2; // detections of a model that are drawn and listed, beside the one that meets the key object

/** The part of a box [left, top, right, bottom] inside a view. */
export function visible([left, top, right, bottom], [width, height]) {
  return [Math.max(left, 0), Math.max(top, 0), Math.min(right, width), Math.min(bottom, height)];
}

const area = (/** @type {number[]} */ [left, top, right, bottom]) =>
  Math.max(right - left, 0) * Math.max(bottom - top, 0);

/** Intersection over union of two boxes, of what the view shows of them. */
export function overlap(first, second, view) {
  const [a, b] = [visible(first, view), visible(second, view)];
  const both = area([Math.max(a[0], b[0]), Math.max(a[1], b[1]), Math.min(a[2], b[2]), Math.min(a[3], b[3])]);
  const either = area(a) + area(b) - both;
  return either > 0 ? both / either : 0;
}

/** Where the view's upper left corner lies in the larger image, for a shift (dx right, dy up). */
export function cornerOf(/** @type {number[]} */ [dx, dy], whole, view) {
  return [(whole[0] - view[0]) / 2 - dx, (whole[1] - view[1]) / 2 + dy];
}

/** The shade of what lies outside a field of view in an image. */
export function maskAround(whole, [x, y], [width, height]) {
  const d = `M0 0H${whole[0]}V${whole[1]}H0ZM${x} ${y}v${height}h${width}v${-height}Z`;
  return node("path", { d, fill: "#000000", "fill-opacity": 0.5, "fill-rule": "evenodd", class: "mask" });
}

/** Rows of numbers out of [.., n, columns], those that are missing left out. */
export function rowsOf(array, model) {
  if (!array) return [];
  const [count, columns] = array.shape.slice(-2);
  const start = model * count * columns;
  const rows = Array.from({ length: count }, (_, n) =>
    Array.from(array.data.subarray(start + n * columns, start + (n + 1) * columns)),
  );
  return rows.filter((row) => row.every(Number.isFinite));
}

/** The detections of one model: box, class, confidence and whether it is right, null where unknown. */
export function detectionsOf(
  /** @type {Record<string, Field>} */ { box, box_label: label, box_score: score, box_correct: correct },
  model,
) {
  const count = box.shape.at(-2) ?? 0;
  const found = [];
  for (let n = 0; n < count; n += 1) {
    const place = model * count + n;
    const edges = Array.from(box.data.subarray(4 * place, 4 * place + 4));
    if (!edges.every(Number.isFinite)) continue;
    const right = correct ? correct.data[place] : NaN;
    found.push({
      box: edges,
      label: label.data[place],
      confidence: score.data[place],
      right: Number.isFinite(right) ? right > 0 : null,
    });
  }
  return found;
}

/** The surest detections, and the one of its class that meets the reference best, which the score is about. */
export function shownOf(found, reference, view) {
  const surest = found.slice(0, MOST);
  if (!reference) return surest;
  const met = (one) => (one.label === reference.label ? one.confidence * overlap(one.box, reference.box, view) : 0);
  const best = found.reduce((one, other) => (met(other) > met(one) ? other : one), found[0]);
  return !best || met(best) === 0 || surest.includes(best) ? surest : [...surest, best];
}

/** The shift at a place: its position, or the coordinates of its element. */
export function shiftOf(state, { element, position }) {
  if (position?.length === 2) return Array.from(position);
  const { dx, dy } = state.group.coords;
  return dx && dy ? [dx[element], dy[element]] : [0, 0];
}

/** What is compared with: the true key object, or each model's own consensus. */
export function referenceOf(truths, consensus, model, byConsensus = false) {
  const [truth] = byConsensus ? [] : rowsOf(truths.moved, 0);
  if (truth) return { box: truth.slice(0, 4), label: truth[4], name: "truth" };
  const [agreed] = rowsOf(consensus.moved, model);
  return agreed ? { box: agreed.slice(0, 4), label: agreed[5], name: "consensus" } : null;
}

/** The view. */
export function createView(el, state) {
  const canvas = h("canvas", { class: "pixels", "aria-hidden": "true" });
  const marks = node("svg", { role: "img", "aria-label": "detections", class: "over-picture" });
  const picture = h("div", { class: "pixels-holder boxes-picture" }, canvas);
  picture.append(marks);
  const heads = HEADS.map(([words, title]) => h("th", { scope: "col", title }, words));
  const head = h("tr", {}, heads);
  const body = h("tbody", {});
  const table = h("div", { class: "boxes-table" }, h("table", { class: "boxes-list" }, h("thead", {}, head), body));
  const note = h("p", { class: "view-note" });
  head.cells[4].hidden = true;
  el.append(picture, table, note);
  const name = (c) => String(state.classes[c] ?? c);

  function set(
    /** @type {ViewContent} */ {
      fields,
      inputs = {},
      truths = {},
      consensus = {},
      byConsensus,
      byBoth,
      models,
      colors,
      place,
    },
  ) {
    if (!fields.box) return write(note, "No detections stored at this position.");
    const image = inputs.whole ?? inputs.image;
    const size = state.move.size
      ? [state.move.size, state.move.size]
      : image
        ? image.shape.slice(-2).reverse()
        : [1, 1];
    const whole = image ? image.shape.slice(-2).reverse() : size;
    const corner = inputs.whole ? cornerOf(shiftOf(state, place), whole, size) : [0, 0];
    paint(canvas, image, whole);
    const found = models.map((_, m) =>
      shownOf(detectionsOf(fields, m), referenceOf(truths, consensus, m, byConsensus), size),
    );
    draw(found, { whole, size, corner, masked: Boolean(inputs.whole), truths, consensus, colors });
    list(found, { size, truths, consensus, byConsensus, byBoth, models, colors });
    write(note, image ? legendOf(truths, consensus) : "No images stored: boxes in the field of view.");
  }

  function draw(found, { whole, size, corner, masked, truths, consensus, colors }) {
    marks.setAttribute("viewBox", `0 0 ${whole[0]} ${whole[1]}`);
    const thin = Math.max(...whole) / 160;
    const outline = (/** @type {number[]} */ [left, top, right, bottom], look, title = "") => {
      const at = {
        x: left + corner[0],
        y: top + corner[1],
        width: Math.max(right - left, 0),
        height: Math.max(bottom - top, 0),
      };
      const made = node("rect", { ...at, fill: "none", "stroke-width": thin, ...look });
      if (title) made.append(node("title", {}, title));
      return made;
    };
    const rim = { stroke: "#ffffff", "stroke-width": thin / 2, class: "fov" };
    const parts = masked ? [maskAround(whole, corner, size), outline([0, 0, ...size], rim)] : [];
    rowsOf(truths.moved, 0).forEach((row, k) => {
      const look = { stroke: "#ffffff", "stroke-width": k === 0 ? thin * 1.8 : thin, class: "truth" };
      parts.push(outline(row, look, `true ${name(row[4])}`));
    });
    found.forEach((some, m) => {
      const [agreed] = rowsOf(consensus.moved, m);
      const dotted = { stroke: colors[m], "stroke-dasharray": `${thin} ${thin * 1.5}`, class: "consensus" };
      if (agreed) parts.push(outline(agreed, dotted, `consensus ${name(agreed[5])}`));
      some.forEach((one, k) => {
        const look = {
          stroke: colors[m],
          "stroke-width": k === 0 ? thin * 1.5 : thin,
          "stroke-opacity": 0.35 + 0.65 * one.confidence,
          class: "box",
        };
        parts.push(outline(one.box, look, `${name(one.label)} ${fixed(one.confidence, 2)}`));
      });
    });
    fill(marks, parts);
  }

  function list(found, { size, truths, consensus, byConsensus, byBoth, models, colors }) {
    const said = [];
    head.cells[4].hidden = !byBoth;
    const rows = models.flatMap((model, m) => {
      const references = [byConsensus, ...(byBoth ? [true] : [])].map((own) => referenceOf(truths, consensus, m, own));
      const title = h("th", { scope: "row" }, model);
      title.style.color = modelInk(colors[m]);
      if (!found[m].length) {
        said.push(`${model}: no detections`);
        return [h("tr", {}, title, h("td", { colspan: String(3 + references.length) }, "no detections"))];
      }
      return found[m].map((one, k) => {
        const close = references.map((reference) => (reference ? overlap(one.box, reference.box, size) : NaN));
        const words = [
          name(one.label),
          fixed(one.confidence, 2),
          ...close.map((value) => fixed(value, 2)),
          one.right === null ? "" : one.right ? "✓" : "✗",
        ];
        if (k === 0) said.push(`${model}: ${words[0]} at ${words[1]}, IoU ${words[2]}`);
        const cells = words.map((word) => h("td", {}, word));
        return h("tr", {}, k === 0 ? title : h("td", {}), cells);
      });
    });
    fill(body, rows);
    marks.setAttribute("aria-label", said.join("; "));
  }

  return { set, destroy: () => el.replaceChildren() };
}

/** Paint an image [channels, height, width], or nothing, in its own pixels. */
export function paint(canvas, image, /** @type {number[]} */ [width, height]) {
  paintPixels(canvas, width, height, (rgba) => image && pixels(image, valueRange(image), rgba));
}

function legendOf(truths, consensus) {
  const parts = truths.moved ? ["white: truth"] : [];
  if (consensus.moved) parts.push("dotted: consensus");
  return parts.join(" · ");
}
