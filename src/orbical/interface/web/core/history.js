// The selection in the address: written when a change is finished, read on back and forward.

import { fromFragment, toFragment } from "./selection.js";

const ONLY_SCAN = /^(scan=[^&]*)?$/;

/** A selection as text that is never empty: an empty one asks for a good place to start. */
function written(selection) {
  const text = toFragment(selection);
  if (!ONLY_SCAN.test(text)) return text;
  return text ? `${text}&sample=0` : "sample=0";
}

/** Where the selection is kept: the URL fragment of a page, or the synced trait of a widget. */
export function createHistory(model) {
  const page = model.get("host") !== undefined;

  function read() {
    return page ? location.hash.replace(/^#/, "") : (model.get("fragment") ?? "");
  }

  /** Write; `replace` keeps the way back free of steps the reader did not make, `anew` starts over. */
  function write(selection, replace, anew = false) {
    const fragment = anew ? toFragment(selection) : written(selection);
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
    return `${address}#${written(selection)}`;
  }

  return { read: () => fromFragment(read()), fresh: () => ONLY_SCAN.test(read()), write, onchange, link };
}
