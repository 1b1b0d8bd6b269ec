// The way back through what was shown: changes of the subset and of the filters, and of nothing else.

import { SHOWN, same } from "./selection.js";

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
