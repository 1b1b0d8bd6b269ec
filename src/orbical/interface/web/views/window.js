// A field of view that moves inside a larger image: what the models see, or where they look.

import { h, write } from "../core/dom.js";
import { node } from "../draw/svg.js";
import { cornerOf, maskAround, paint, shiftOf } from "./boxes.js";
import { createModes } from "./tile.js";

/** @import { ViewContent } from "./index.js" */

/** The view: it begins with what the models see. */
export function createView(el, state) {
  const canvas = h("canvas", { class: "pixels", role: "img", "aria-label": "input image" });
  const marks = node("svg", { class: "over-picture", "aria-hidden": "true" });
  const picture = h("div", { class: "pixels-holder" }, canvas);
  picture.append(marks);
  const modes = [
    ["view", "View", "Show what the models see"],
    ["whole", "Full", "Show the view within the full image"],
  ];
  const bar = createModes("Image display", modes, choose);
  const note = h("p", { class: "view-note" });
  el.append(picture, bar.el, note);
  let mode = "view";
  let given = null;

  function choose(wanted) {
    mode = wanted;
    bar.set(mode);
    draw();
  }

  function draw() {
    if (!given) return;
    const { fields, place } = given;
    const larger = mode === "whole" && fields.whole;
    const image = larger ? fields.whole : fields.image;
    if (!image) return;
    const whole = image.shape.slice(-2).reverse();
    paint(canvas, image, whole);
    marks.replaceChildren();
    marks.setAttribute("viewBox", `0 0 ${whole[0]} ${whole[1]}`);
    if (larger) {
      const size = fields.image.shape.slice(-2).reverse();
      const [x, y] = cornerOf(shiftOf(state, place), whole, size);
      const rim = { fill: "none", stroke: "#ffffff", "stroke-width": whole[0] / 160 };
      marks.append(maskAround(whole, [x, y], size), node("rect", { x, y, width: size[0], height: size[1], ...rim }));
    }
    const words = larger ? "full image with the field of view" : "field of view";
    canvas.setAttribute("aria-label", `input at ${place.name}: ${words}, ${whole[0]} by ${whole[1]} pixels`);
    write(note, larger ? "bright: model input" : "");
  }

  function set(/** @type {ViewContent} */ content) {
    given = content;
    bar.el.hidden = !content.fields.whole;
    draw();
  }

  choose(mode);
  return { set, destroy: () => el.replaceChildren() };
}
