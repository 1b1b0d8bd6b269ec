// Key points over the image: the truth, each model's points joined to it, the consensus, and their scores.

import { fill, h, write } from "../core/dom.js";
import { modelInk } from "../draw/colors.js";
import { fixed } from "../draw/format.js";
import { node } from "../draw/svg.js";
import { paint } from "./boxes.js";

/** @import { Field, ViewContent } from "./index.js" */

/** The points [x, y] of one model out of [models, n, 2 or 3], null where a point is not known. */
export function pointsOf(/** @type {Field | undefined} */ field, model) {
  if (!field) return [];
  const [count, columns] = field.shape.slice(-2);
  const start = (field.shape.length > 2 && field.shape[0] > 1 ? model : 0) * count * columns;
  return Array.from({ length: count }, (_, n) => {
    const place = Array.from(field.data.subarray(start + n * columns, start + n * columns + 2));
    return place.every(Number.isFinite) ? place : null;
  });
}

/** The lines between points that are both known. */
export function limbs(points, edges) {
  return edges.flatMap(([first, second]) => (points[first] && points[second] ? [[points[first], points[second]]] : []));
}

/** What is said of each model: its scores against the truth, or against the consensus. */
export function spoken(/** @type {ViewContent} */ { fields, models, byConsensus }) {
  const shown = byConsensus
    ? [["score_vs_consensus", "agreement with the consensus"]]
    : [
        ["oks", "OKS"],
        ["pck", "PCK"],
        ["distance", "distance"],
      ];
  return models.map((name, m) => {
    const known = shown.filter(([field]) => Number.isFinite(fields[field]?.data[m]));
    return `${name}: ${known.map(([field, title]) => `${title} ${fixed(fields[field].data[m], 3)}`).join(", ")}`;
  });
}

/** The view. */
export function createView(el, state) {
  const canvas = h("canvas", { class: "pixels", "aria-hidden": "true" });
  const marks = node("svg", { role: "img", "aria-label": "key points", class: "key-points" });
  const picture = h("div", { class: "pixels-holder points-picture" }, canvas);
  picture.append(marks);
  const list = h("p", { class: "view-note model-lines" });
  const note = h("p", { class: "view-note" });
  el.append(picture, list, note);

  function set(/** @type {ViewContent} */ content) {
    const { fields, inputs = {}, truths = {}, consensus = {}, models, colors } = content;
    if (!fields.points) return write(note, "No points stored at this position.");
    const image = inputs.image;
    const [height, width] = image ? image.shape.slice(-2) : boundsOf([fields.points, truths.moved]);
    paint(canvas, image, [width, height]);
    marks.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const thin = Math.max(width, height) / 160;
    const edges = state.task?.edges ?? [];
    const truth = pointsOf(truths.moved, 0);
    const parts = truth.length
      ? [...sticks(truth, edges, "#ffffff", thin), ...dots(truth, "none", "#ffffff", thin)]
      : [];
    models.forEach((_, m) => {
      const points = pointsOf(fields.points, m);
      const apart = points.flatMap((place, n) => (place && truth[n] ? [[place, truth[n]]] : []));
      parts.push(
        ...sticks(points, edges, colors[m], thin),
        ...apart.map((ends) => line(ends, { stroke: colors[m], "stroke-dasharray": `${thin} ${thin}` }, thin / 2)),
        ...crosses(pointsOf(consensus.moved, m), colors[m], thin),
        ...dots(points, colors[m], "#ffffff", thin),
      );
    });
    fill(marks, parts);
    const words = spoken(content);
    marks.setAttribute("aria-label", words.join("; "));
    fill(
      list,
      words.map((text, m) => {
        const row = h("span", {}, text);
        row.style.color = modelInk(colors[m]);
        return row;
      }),
    );
    write(
      note,
      [truth.length ? "white: truth" : "", consensus.moved ? "+: consensus" : ""].filter(Boolean).join(" · "),
    );
  }

  return { set, destroy: () => el.replaceChildren() };
}

const line = (/** @type {number[][]} */ [[x1, y1], [x2, y2]], look, width) =>
  node("line", { x1, y1, x2, y2, "stroke-width": width, ...look });
const sticks = (points, edges, stroke, thin) => limbs(points, edges).map((ends) => line(ends, { stroke }, thin));
const dots = (points, inner, stroke, thin) =>
  points
    .filter(Boolean)
    .map(([cx, cy]) => node("circle", { cx, cy, r: 2 * thin, fill: inner, stroke, "stroke-width": thin / 1.5 }));
const crosses = (points, stroke, thin) =>
  points.filter(Boolean).map(([x, y]) =>
    node("path", {
      d: `M${x - 2 * thin} ${y}h${4 * thin}M${x} ${y - 2 * thin}v${4 * thin}`,
      stroke,
      "stroke-width": thin / 1.5,
    }),
  );

/** Height and width that hold all points, where no image is stored. */
function boundsOf(fields) {
  const places = fields.flatMap((field) => pointsOf(field, 0)).filter(Boolean);
  return [Math.max(1, ...places.map(([, y]) => y)), Math.max(1, ...places.map(([x]) => x))];
}
