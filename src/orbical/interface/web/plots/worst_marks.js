/** Diamonds where models are worst between the scanned positions. */

import { node, round } from "../draw/svg.js";
import { marker } from "./markers.js";

const DIAMOND = 3;

/** A filled diamond in the color of the model, for curves. */
export function worstOnCurve(x, y, color, { small, title }) {
  const look = small ? { "fill-opacity": 0.55, "stroke-width": 0.5 } : {};
  const drawn = marker(DIAMOND, x, y, small ? 2.5 : 5.5, color, { class: "worst-mark", ...look });
  drawn.append(node("title", {}, title));
  return drawn;
}

/** A diamond that is seen on dark and on light cells. */
export function worstOnCells(x, y, { small, title }) {
  const r = small ? 2.5 : 6;
  const d = `M0 ${-r}L${r} 0L0 ${r}L${-r} 0Z`;
  const line = small ? 1 : 2;
  return node(
    "g",
    { class: "worst-mark", transform: `translate(${round(x)} ${round(y)})` },
    node("path", { d, fill: "none", stroke: "#000000", "stroke-width": line + 2, "stroke-opacity": 0.75 }),
    node("path", { d, fill: "#ffffff", "fill-opacity": small ? 0.8 : 0, stroke: "#ffffff", "stroke-width": line }),
    node("title", {}, title),
  );
}
