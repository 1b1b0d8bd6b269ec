// A list that is saved beside the scan, as the page knows it: changes are sent one after the other, none is lost.

/** Keep the `field` of answers of a kind; `on` tells of every answer, with its error if it has one. */
export function createSavedList(app, kind, field, initial = []) {
  const listeners = new Set();
  const waiting = [];
  /** @type {any[]} */
  let list = initial;
  let [unsaved, busy] = ["", false];

  function next() {
    if (busy || !waiting.length) return;
    busy = true;
    app.request(kind, waiting[0]);
  }

  function receive(answer) {
    busy = false;
    waiting.shift();
    if (!answer.error) [list, unsaved] = [answer[field], answer.unsaved];
    for (const listener of listeners) listener(answer.error ?? "");
    next();
  }

  return {
    list: () => list,
    unsaved: () => unsaved,
    change: (message) => (waiting.push(message), next()),
    on: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    destroy: app.on(kind, receive),
  };
}
