// Updates that come by themselves wait until the pointer is away: nothing may move under it.

const LOOK_MS = 200;

/** Hold updates back while the pointer is over a plot or pressed; the newest one is kept. */
export function createQuietUpdates(root, onwaiting) {
  let pressed = false;
  /** @type {null | (() => void)} */
  let waiting = null;
  let timer = 0;
  const press = () => (pressed = true);
  const release = () => (pressed = false);
  const busy = () => pressed || root.querySelector(".section .body:hover") !== null;

  function attempt() {
    clearTimeout(timer);
    if (!waiting) return;
    onwaiting(busy());
    if (busy()) return void (timer = window.setTimeout(attempt, LOOK_MS));
    const update = waiting;
    waiting = null;
    update();
  }

  addEventListener("pointerdown", press, true);
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, release, true);
  return {
    add: (update) => ((waiting = update), attempt()),
    destroy() {
      clearTimeout(timer);
      removeEventListener("pointerdown", press, true);
      for (const end of ["pointerup", "pointercancel"]) removeEventListener(end, release, true);
    },
  };
}
