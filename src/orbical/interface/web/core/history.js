// The selection in the address: written when a change is finished, read on back and forward.

import { fromFragment, toFragment } from "./selection.js";

/** Where the selection is kept: the URL fragment of a page, or the synced trait of a widget. */
export function createHistory(model) {
  const page = model.get("host") !== undefined;

  function read() {
    return page ? location.hash.replace(/^#/, "") : (model.get("fragment") ?? "");
  }

  /** Write; `replace` keeps the reader's way back free of steps that they did not make. */
  function write(selection, replace) {
    const fragment = toFragment(selection) || "sample=0";
    if (fragment === read()) return;
    if (!page) {
      model.set("fragment", fragment);
      model.save_changes();
    } else if (replace) history.replaceState(null, "", `#${fragment}`);
    else history.pushState(null, "", `#${fragment}`);
  }

  /** Call back with the selection when the reader goes back, forward, or edits the address. */
  function onchange(callback) {
    const told = () => callback(fromFragment(read()));
    if (page) {
      addEventListener("popstate", told);
      return () => removeEventListener("popstate", told);
    }
    model.on("change:fragment", told);
    return () => model.off("change:fragment", told);
  }

  /** The address that opens this very view. */
  function link(selection) {
    const address = page ? location.href.replace(/#.*$/, "") : "";
    return `${address}#${toFragment(selection) || "sample=0"}`;
  }

  return { read: () => fromFragment(read()), empty: () => read() === "", write, onchange, link };
}
