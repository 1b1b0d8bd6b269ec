/** What is marked on a scatter plot: the selected point, the hovered one, the lasso, names of classes. */

import { inkOf } from "../draw/colors.js";
import { shortened } from "../draw/format.js";
import { ACCENT, INK, PANEL, assign, haloed, node, polyline, textWidth } from "../draw/svg.js";
import { toPixels } from "../draw/viewport.js";

const [SIZE, BOLD, AWAY, LONGEST] = [13, 1.1, 14, 22];

/** A place for words beside a point, inside the plot and off the words that are there; none if all are taken. */
export function freeSpot(/** @type {number[]} */ [px, py], wide, { width, height }, taken) {
  const aside = wide / 2 + AWAY - 4;
  const spots = [
    [0, -AWAY],
    [0, AWAY],
    [aside, 0],
    [-aside, 0],
  ].map(([dx, dy]) => ({ x: px + dx, y: py + dy, wide }));
  const inside = ({ x, y }) => x >= wide / 2 && x <= width - wide / 2 && y >= 8 && y <= height - 8;
  const apart = (one) => (other) =>
    Math.abs(one.x - other.x) > (one.wide + other.wide) / 2 + 2 || Math.abs(one.y - other.y) >= SIZE + 1;
  return spots.find((spot) => inside(spot) && taken.every(apart(spot))) ?? null;
}

/** Make the marks: `elements` to show, and `place(state, xy)` to put them where they belong. */
export function createScatterMarks() {
  const ring = (look) => node("circle", { fill: "none", visibility: "hidden", ...look });
  const hovered = ring({ r: 7, stroke: INK, "stroke-width": 1.5, "data-transient": "" });
  const under = ring({ r: 8, stroke: PANEL, "stroke-width": 5 });
  const selected = ring({ r: 8, stroke: INK, "stroke-width": 2.5 });
  const look = { fill: ACCENT, "fill-opacity": 0.12, stroke: ACCENT, "stroke-width": 1.5, "stroke-dasharray": "5 3" };
  const outline = node("path", look);
  const names = node("g", { "font-weight": 700 });
  return {
    elements: [outline, names, hovered, under, selected],
    /** Write names `{ text, x, y, color }` among the points. */
    name(state, labels, dark) {
      const taken = [];
      names.replaceChildren(
        ...labels.flatMap(({ text, x, y, color }) => {
          const words = shortened(text, LONGEST);
          const spot = freeSpot(toPixels(state.view, x, y), textWidth(words, SIZE) * BOLD, state.view, taken);
          if (!spot) return []; // the key below the map has all names
          taken.push(spot);
          const look = { fill: inkOf(color, dark), "font-size": SIZE, "stroke-width": 4, "font-weight": 700 };
          return haloed(spot.x, spot.y, words, look);
        }),
      );
    },
    place(state, xy) {
      for (const [element, i] of [
        [hovered, state.hovered],
        [under, state.selected],
        [selected, state.selected],
      ]) {
        const seen = i >= 0 && Number.isFinite(xy[2 * i]);
        const [cx, cy] = seen ? toPixels(state.view, xy[2 * i], xy[2 * i + 1]) : [0, 0];
        assign(element, { cx, cy, visibility: seen ? null : "hidden" });
      }
      outline.setAttribute(
        "d",
        polyline(
          state.lasso.map(([x, y]) => toPixels(state.view, x, y)),
          true,
        ),
      );
    },
  };
}
