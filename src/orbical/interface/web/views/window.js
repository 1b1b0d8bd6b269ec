// A field of view that moves inside a larger image: what the models see, or where they look.

import { button, h, write } from "../core/dom.js";
import { node } from "../draw/svg.js";
import { cornerOf, paint, shiftOf } from "./boxes.js";

/** @import { ViewContent } from "./index.js" */

/** The view: it begins with what the models see. */
export function createView(el, state) {
  const canvas = h("canvas", { class: "pixels", role: "img", "aria-label": "input image" });
  const marks = node("svg", { "aria-hidden": "true" });
  const picture = h("div", { class: "pixels-holder" }, canvas);
  picture.append(marks);
  const modes = [
    ["view", "View", "Show what the models see"],
    ["whole", "Full", "Show the view within the full image"],
  ];
  const buttons = modes.map(([mode, words, title]) =>
    button(words, () => choose(mode), { class: "tool", title, "aria-label": `${words}: ${title}` }),
  );
  const bar = h("div", { class: "modes", role: "group", "aria-label": "Image display" }, buttons);
  const note = h("p", { class: "view-note" });
  Object.assign(picture.style, { position: "relative" });
  Object.assign(marks.style, {
    position: "absolute",
    inset: "0",
    margin: "auto",
    width: "min(100cqw, 100cqh)",
    height: "min(100cqw, 100cqh)",
    pointerEvents: "none",
  });
  el.append(picture, bar, note);
  let mode = "view";
  let given = null;

  function choose(wanted) {
    mode = wanted;
    modes.forEach(([name], k) => buttons[k].setAttribute("aria-pressed", String(name === mode)));
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
      const d = `M0 0H${whole[0]}V${whole[1]}H0ZM${x} ${y}v${size[1]}h${size[0]}v${-size[1]}Z`;
      marks.append(
        node("path", { d, fill: "#000000", "fill-opacity": 0.5, "fill-rule": "evenodd" }),
        node("rect", {
          x,
          y,
          width: size[0],
          height: size[1],
          fill: "none",
          stroke: "#ffffff",
          "stroke-width": whole[0] / 160,
        }),
      );
    }
    const words = larger ? "full image with the field of view" : "field of view";
    canvas.setAttribute("aria-label", `input at ${place.name}: ${words}, ${whole[0]} by ${whole[1]} pixels`);
    write(note, larger ? "bright: model input" : "");
  }

  function set(/** @type {ViewContent} */ content) {
    given = content;
    bar.hidden = !content.fields.whole;
    draw();
  }

  choose(mode);
  return { set, destroy: () => el.replaceChildren() };
}
