// The selection and who listens to it. Nothing else on the page holds state that a link must carry.
import { DEFAULTS, fromFragment, same, SHOWN, toFragment } from "./selection.js";

/** Hold a selection; tell subscribers which fields changed, once per change. */
export function createStore(initial) {
  let selection = { ...DEFAULTS, ...initial };
  const subscribers = new Set();

  /** Change fields. `done: false` while a drag goes on; the URL is written only when done. */
  function set(patch, { done = true, from = "user" } = {}) {
    const changed = Object.keys(patch).filter((name) => !same(selection[name], patch[name]));
    if (changed.length) selection = { ...selection, ...patch };
    if (!changed.length && !done) return;
    for (const { fields, callback } of [...subscribers]) {
      const relevant = changed.some((name) => fields.has(name));
      if (relevant || (fields.has("done") && done)) callback(selection, { changed, done, from });
    }
  }

  /** Call back when one of the fields changes ("done": also whenever a change is finished). */
  function subscribe(fields, callback) {
    const entry = { fields: new Set(fields), callback };
    subscribers.add(entry);
    return () => subscribers.delete(entry);
  }

  return { get: () => selection, set, subscribe };
}

const MOST = 200;

/** Keep the steps of the reader; back and forward of the browser move along the same steps. */
export function createUndo(store) {
  const shown = (selection) => Object.fromEntries(SHOWN.map((name) => [name, selection[name]]));
  const listeners = new Set();
  let steps = [shown(store.get())];
  let at = 0;

  /** The step that shows the same, the nearest if there are several. */
  function nearest(now) {
    const alike = steps.flatMap((step, i) => (same(step, now) ? [i] : []));
    return alike.sort((a, b) => Math.abs(a - at) - Math.abs(b - at))[0];
  }

  function note(selection, { done, from }) {
    const now = shown(selection);
    if (!done || same(now, steps[at])) return;
    const before = from === "link" ? nearest(now) : undefined;
    if (before !== undefined) at = before;
    else if (from === "state") steps[at] = now;
    else {
      steps = [...steps.slice(0, at + 1), now].slice(-MOST);
      at = steps.length - 1;
    }
    tell();
  }

  function go(by) {
    if (!steps[at + by]) return false;
    at += by;
    store.set(steps[at]);
    tell();
    return true;
  }

  function tell() {
    listeners.forEach((listener) => listener());
  }

  const stop = store.subscribe(["done"], note);
  return {
    undo: () => go(-1),
    redo: () => go(1),
    can: () => ({ undo: at > 0, redo: at < steps.length - 1 }),
    on: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    destroy: stop,
  };
}

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

  /** The address that opens this very view; with a `token` in another browser, too. */
  function link(selection, token = "") {
    const address = page ? location.href.replace(/#.*$/, "") + (token && `?token=${token}`) : "";
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
