// The selection in the address: written when a change is finished, read on back and forward.

import { fromFragment, toFragment } from "./selection.js";

const ONLY_SCAN = /^(scan=[^&]*)?$/;

/** A selection as text that is never empty: an empty one asks for a good place to start. */
function written(selection) {
  const text = toFragment(selection);
  if (!ONLY_SCAN.test(text)) return text;
  return text ? `${text}&sample=0` : "sample=0";
}

const MEMBERS = /(?:^|&)members=([\d,-]*)/;

/**
 * Where the selection is kept: the URL fragment of a page, or the synced trait of a widget. A fragment also has
 * the samples of the subset if `members(selection)` says them, so that a link works where the set is not known.
 */
export function createHistory(model, members = /** @type {(selection: any) => string | null} */ (() => null)) {
  const page = model.get("host") !== undefined;

  function withMembers(text, selection) {
    const samples = page && selection.subset ? members(selection) : null;
    return samples === null ? text : `${text}&members=${samples}`;
  }

  function read() {
    return page ? location.hash.replace(/^#/, "") : (model.get("fragment") ?? "");
  }

  /** Write; `replace` keeps the way back free of steps the reader did not make, `anew` starts over. */
  function write(selection, replace, anew = false) {
    const fragment = withMembers(anew ? toFragment(selection) : written(selection), selection);
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
    return `${address}#${withMembers(written(selection), selection)}`;
  }

  return {
    read: () => fromFragment(read()),
    fresh: () => ONLY_SCAN.test(read()),
    /** The samples of the subset, where the address says them. */
    members: () => MEMBERS.exec(read())?.[1] ?? "",
    write,
    onchange,
    link,
  };
}
