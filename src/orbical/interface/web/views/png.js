// A picture made in Python: one PNG, shown as it is.

import { h } from "../core/dom.js";

/** @import { ViewContent } from "./index.js" */

/** The view: the first field of type png. */
export function createView(el) {
  const picture = h("img", { class: "picture", alt: "" });
  el.append(picture);
  let url = null;

  function release() {
    if (url) URL.revokeObjectURL(url);
  }

  function set(/** @type {ViewContent} */ { fields, place }) {
    const found = Object.values(fields).find((field) => field.dtype === "png");
    if (!found) return;
    release();
    url = URL.createObjectURL(new Blob([found.data], { type: "image/png" }));
    picture.src = url;
    picture.alt = `picture at ${place.name}`;
  }

  return { set, destroy: () => (release(), el.replaceChildren()) };
}
