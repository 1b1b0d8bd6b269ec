/** What is marked on a scatter plot: the selected point, the hovered one, the lasso, names of classes. */

import { ACCENT, INK, PANEL, assign, haloed, node, polyline } from "../draw/svg.js";
import { toPixels } from "../draw/view.js";

/** Make the marks: `elements` to show, and `place(state, xy)` to put them where they belong. */
export function createRings() {
  const ring = (look) => node("circle", { fill: "none", visibility: "hidden", ...look });
  const hovered = ring({ r: 7, stroke: INK, "stroke-width": 1.5, "data-transient": "" });
  const under = ring({ r: 8, stroke: PANEL, "stroke-width": 5 });
  const selected = ring({ r: 8, stroke: INK, "stroke-width": 2.5 });
  const look = { fill: ACCENT, "fill-opacity": 0.12, stroke: ACCENT, "stroke-width": 1.5, "stroke-dasharray": "5 3" };
  const outline = node("path", look);
  const names = node("g", { "font-weight": 700 });
  return {
    elements: [outline, names, hovered, under, selected],
    /** Write names `{ text, x, y, colour }` among the points. */
    name(state, labels) {
      names.replaceChildren(...labels.map(({ text, x, y, colour }) => {
        const look = { fill: colour, "font-size": 13, "stroke-width": 4, "font-weight": 700 };
        return haloed(...toPixels(state.view, x, y), text, look);
      }));
    },
    place(state, xy) {
      for (const [element, i] of [[hovered, state.hovered], [under, state.selected], [selected, state.selected]]) {
        const seen = i >= 0 && Number.isFinite(xy[2 * i]);
        const [cx, cy] = seen ? toPixels(state.view, xy[2 * i], xy[2 * i + 1]) : [0, 0];
        assign(element, { cx, cy, visibility: seen ? null : "hidden" });
      }
      outline.setAttribute("d", polyline(state.lasso.map(([x, y]) => toPixels(state.view, x, y)), true));
    },
  };
}
