// A figure to take away: the page or a part of it, laid out at a width and drawn as an SVG.

import { setPixelRatio } from "../draw/canvas.js";
import { pageSvg } from "./page_svg.js";

export const NARROWEST = 240;
export const WIDEST = 8000;
const FLOWING = 1240; // below, the page is a column that is as high as it needs

const nextFrame = () => new Promise(requestAnimationFrame);

/** A width that a figure can have: `shown` where none or none that is possible is asked for. */
export function figureWidth(asked, shown) {
  const width = Math.round(Number(asked));
  return asked !== "" && width >= NARROWEST && width <= WIDEST ? width : Math.round(shown);
}

/** What to set while the figure has another width than on the screen: the page flows, a section keeps its shape. */
function stylesFor(el, root, width) {
  const box = el.getBoundingClientRect();
  if (width === Math.round(box.width)) return [];
  if (el.classList.contains("page")) {
    const style = { width: `${width}px`, maxWidth: "none" };
    return [[root, style], ...(width < FLOWING ? [[el, { height: "auto" }]] : [])];
  }
  const height = Math.round((box.height * width) / box.width);
  const size = { width: `${width}px`, height: `${height}px`, maxWidth: "none", maxHeight: "none" };
  return [[el, { position: "fixed", left: "0", top: "0", ...size }]];
}

/**
 * Draw `el` as an SVG, laid out `width` pixels wide, its canvases painted for `scale` pixels to one; then all is as
 * before. `repaint` paints what can be read only in the turn in which it was painted.
 */
export async function figureOf(el, root, { width, scale }, repaint) {
  const set = stylesFor(el, root, width);
  const before = set.map(([one, styles]) =>
    Object.fromEntries(Object.keys(styles).map((name) => [name, one.style[name]])),
  );
  root.classList.add("exporting");
  set.forEach(([one, styles]) => Object.assign(one.style, styles));
  try {
    await nextFrame(); // plots hear of their size
    setPixelRatio(scale);
    await nextFrame(); // and draw themselves
    repaint();
    return pageSvg(el);
  } finally {
    set.forEach(([one], n) => Object.assign(one.style, before[n]));
    root.classList.remove("exporting");
    setPixelRatio(0);
  }
}
