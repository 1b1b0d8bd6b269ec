// A closer look at a picture on the stage: it grows inside its box and draws itself anew, and scrolling moves it.

import { button, h, write } from "../core/dom.js";
import { clamp } from "../draw/scales.js";

const [MOST, STEP, STILL] = [16, 1.5, 4];

/** Where to scroll so that the place under the pointer stays there. */
export function scrolledTo(scroll, pointer, factor) {
  return (scroll + pointer) * factor - pointer;
}

/**
 * Watch a section whose view holds a box `.look`; its content is `--zoom` times as large as the box, until the stage is
 * left.
 */
export function createZoom(frame, store) {
  const { el } = frame;
  const level = button("100 %", () => set(1), { class: "tool", title: "Fit the window  0" });
  const tools = h(
    "div",
    { class: "zoom-tools", role: "group", "aria-label": "Zoom" },
    button("−", () => by(1 / STEP), { class: "tool icon", "aria-label": "Zoom out", title: "Zoom out  −" }),
    level,
    button("+", () => by(STEP), { class: "tool icon", "aria-label": "Zoom in", title: "Zoom in  +" }),
  );
  frame.controls.append(tools);
  const ending = new AbortController();
  const on = (name, listener, options = {}) =>
    el.addEventListener(name, listener, { ...options, signal: ending.signal });
  let zoom = 1;
  const held = new Map(); // pointers that are down, where they are
  let [moved, from] = [false, [0, 0]];

  const look = () => el.querySelector(".look");
  const active = () => Boolean(look() && el.closest(".staged"));

  /** Show at a zoom, about a place of the window (the middle of the box where none is given). */
  function set(wanted, place) {
    const box = look();
    if (!box) return;
    const next = clamp(wanted, 1, MOST);
    const { left, top, width, height } = box.getBoundingClientRect();
    const [x, y] = place ? [place[0] - left, place[1] - top] : [width / 2, height / 2];
    const scroll = [scrolledTo(box.scrollLeft, x, next / zoom), scrolledTo(box.scrollTop, y, next / zoom)];
    zoom = next;
    el.style.setProperty("--zoom", String(zoom));
    el.classList.toggle("zoomed", zoom > 1);
    if (zoom > 1)
      box.tabIndex = 0; // arrow keys move it
    else box.removeAttribute("tabindex");
    box.scrollTo(...scroll);
    write(level, `${Math.round(100 * zoom)} %`);
  }

  function by(factor, place) {
    set(zoom * factor, place);
  }

  const places = () => [...held.values()];
  const middle = () => places().reduce(([x, y], [a, b]) => [x + a / held.size, y + b / held.size], [0, 0]);
  const apart = () => (held.size < 2 ? 0 : Math.hypot(...[0, 1].map((k) => places()[0][k] - places()[1][k])));

  on(
    "wheel",
    (event) => {
      if (!active() || event.defaultPrevented || !event.target.closest(".look")) return;
      event.preventDefault();
      by(2 ** (-event.deltaY / (event.deltaMode ? 12 : 240)), [event.clientX, event.clientY]);
    },
    { passive: false },
  );
  on("pointerdown", (event) => {
    if (!active() || event.button || !event.target.closest(".look") || held.size > 1) return;
    if (!held.size) [moved, from] = [false, [event.clientX, event.clientY]];
    held.set(event.pointerId, [event.clientX, event.clientY]);
  });
  on("pointermove", (event) => {
    if (!held.has(event.pointerId)) return;
    const [before, distance] = [middle(), apart()];
    held.set(event.pointerId, [event.clientX, event.clientY]);
    const after = middle();
    moved ||= held.size > 1 || Math.hypot(after[0] - from[0], after[1] - from[1]) > STILL;
    // A cloud of points turns under the pointer; two fingers zoom it like every picture.
    if (!moved || (held.size < 2 && event.target.closest(".cloud"))) return;
    if (distance) by(apart() / distance, before);
    look().scrollBy(before[0] - after[0], before[1] - after[1]);
    if (held.size < 2) el.setPointerCapture(event.pointerId); // a finger keeps its place by itself
  });
  for (const name of ["pointerup", "pointercancel"]) on(name, (event) => held.delete(event.pointerId));
  // The end of a drag is no click on what lies under it.
  on("click", (event) => moved && zoom > 1 && event.target.closest(".look") && event.stopPropagation(), {
    capture: true,
  });
  on("keydown", (event) => {
    if (!active() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (key(event.key)) event.preventDefault();
  });

  /** What a key does; false where it means nothing here. */
  function key(name) {
    const factor = { "+": STEP, "=": STEP, "-": 1 / STEP, "−": 1 / STEP, 0: 0 }[name];
    if (factor === undefined || !active()) return false;
    set(factor ? zoom * factor : 1);
    return true;
  }

  const stop = store.subscribe(["stage"], () => set(1));
  return { key, destroy: () => (stop(), ending.abort()) };
}
