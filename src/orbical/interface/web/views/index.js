// The view of an answer, by its name; an unknown name shows its numbers.

import { h } from "../core/dom.js";
import * as views from "./all.js";

/**
 * What a view is given: arrays by name, of the view itself, of the input, of the consensus and of the truth.
 * @typedef {{ data: any, shape: number[], dtype?: string }} Field
 * @typedef {{
 *   fields: Record<string, Field>,
 *   inputs?: Record<string, Field>,
 *   consensus?: Record<string, Field>,
 *   truths?: Record<string, Field>,
 *   byConsensus?: boolean,
 *   byBoth?: boolean,
 *   about?: any,
 *   models: string[],
 *   colors: string[],
 *   truth?: number | null,
 *   label?: number | null,
 *   classes?: string[],
 *   part?: string,
 *   slices?: number[],
 *   place: { sample: number, element: number, position: number[], name: string, live: boolean },
 * }} ViewContent
 */

const PICTURES = ":scope > :is(.pixels-holder, .maps, .quivers, .picture)";

/** Put the picture of a view into a box of its own, in which it can grow and be moved. */
function boxed(el) {
  for (const picture of el.querySelectorAll(PICTURES)) {
    const box = h("div", { class: "look" });
    picture.replaceWith(box);
    box.append(picture);
  }
  const watch = new ResizeObserver((entries) => entries.forEach(({ target }) => soften(target)));
  el.querySelectorAll(".look > .pixels-holder > .pixels").forEach((canvas) => watch.observe(canvas));
}

/** Pixels are crisp where they are enlarged; where several share one of the screen, they are averaged. */
function soften(canvas) {
  const shrunk = Math.max(canvas.width, canvas.height) > Math.max(canvas.clientWidth, 1) * (devicePixelRatio || 1);
  canvas.style.imageRendering = shrunk ? "auto" : "";
}

/** Hold one view in `el`, made anew only when the answer names another. */
export function createNamedView(el, state) {
  let name = null;
  let view = null;

  function set(asked, content) {
    // A picture that nobody drew, as in a report without Python, gives way to its numbers.
    const drawn = asked !== "png" || Object.values(content.fields).some(({ dtype }) => dtype === "png");
    const wanted = drawn ? asked : "values";
    if (wanted !== name) {
      view?.destroy();
      el.replaceChildren();
      view = (views[wanted] ?? views.values).createView(el, state);
      boxed(el);
      name = wanted;
    }
    view.set(content);
  }

  return { set, destroy: () => view?.destroy() };
}
