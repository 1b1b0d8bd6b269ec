/** What hands do on a scatter plot: hover, click, lasso, wheel, pan, double click. */

import { simplifyTo } from "../draw/polygon.js";
import { panned, toData, zoomed } from "../draw/map_layout.js";

const [STILL, CORNERS] = [4, 40];

/** What the keys held at the start of a lasso make of it, as in programs for pictures. */
function meantBy({ shiftKey, altKey }) {
  if (shiftKey && altKey) return "keep";
  if (shiftKey) return "add";
  return altKey ? "remove" : "";
}

/**
 * A finger scrolls the page past a map that is shown whole; it moves a zoomed one, and draws a lasso.
 * @param {HTMLElement | SVGElement} root
 * @param {Record<string, any>} state
 */
export function touchable(root, { mode, view }) {
  root.style.touchAction = mode === "lasso" || view?.zoom > 1 ? "none" : "pan-y";
}

/** Watch the plot; `state` holds `view`, `mode` and `busy`, `does` is told what was done. */
export function attachGestures(frame, state, does) {
  const { root } = frame;
  touchable(root, state);
  root.style.userSelect = "none";
  let held = null;
  const local = (event) => {
    const { left, top } = root.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const kindOf = (event) => {
    if (event.button === 1 || event.ctrlKey || event.metaKey) return "pan";
    if (event.shiftKey || event.altKey || state.mode === "lasso") return "lasso";
    return state.view.zoom > 1 ? "pan" : "click";
  };
  frame.on(root, "pointerdown", (event) => {
    if (held || event.button > 1 || !state.view) return;
    const [x, y] = local(event);
    const kind = kindOf(event);
    if (kind === "lasso" && state.busy) return; // these points are about to move
    held = {
      id: event.pointerId,
      kind,
      how: meantBy(event),
      from: [x, y],
      last: [x, y],
      moved: false,
      path: [[x, y]],
      before: state.lasso,
    };
    root.setPointerCapture(held.id);
  });
  // The middle button pans: it must not start the browser's own scrolling.
  frame.on(root, "mousedown", (event) => event.button === 1 && event.preventDefault());
  frame.on(root, "pointermove", (event) => {
    const [x, y] = local(event);
    if (!held) return does.hover(x, y);
    if (event.pointerId !== held.id) return undefined;
    held.moved ||= Math.hypot(x - held.from[0], y - held.from[1]) > STILL;
    if (!held.moved) return undefined;
    if (held.kind === "pan") {
      state.view = panned(state.view, x - held.last[0], y - held.last[1]);
      does.hover(null);
      does.later();
    } else if (held.kind === "lasso") {
      held.path.push([x, y]);
      does.draft(held.path.map((place) => toData(state.view, ...place)));
    }
    held.last = [x, y];
    return undefined;
  });
  const release = (event) => {
    if (!held || event.pointerId !== held.id) return;
    const { kind, how, moved, path, from, before } = held;
    held = null;
    if (event.type !== "pointerup" || (kind === "lasso" && state.busy)) does.draft(before);
    else if (!moved || kind === "click") does.pick(...(moved ? local(event) : from));
    else if (kind === "lasso") finish(path, before, how);
  };
  const finish = (path, before, how) => {
    const corners = simplifyTo(path, CORNERS, 1.5);
    if (corners.length < 3) return does.draft(before);
    const polygon = corners.map((place) => toData(state.view, ...place).map((value) => Math.round(value * 1e4) / 1e4));
    does.draft(polygon);
    return does.lasso(polygon, how);
  };
  frame.on(root, "pointerup", release);
  frame.on(root, "pointercancel", release);
  frame.on(root, "pointerleave", () => !held && does.hover(null));
  frame.on(
    root,
    "wheel",
    (event) => {
      if (!state.view) return;
      const next = zoomed(state.view, 2 ** (-event.deltaY / (event.deltaMode ? 12 : 240)), ...local(event));
      if (next.zoom === state.view.zoom) return; // all is in view: the page may scroll
      event.preventDefault();
      state.view = next;
      does.later();
    },
    { passive: false },
  );
  frame.on(root, "dblclick", () => {
    state.view = null;
    does.later();
  });
}
