/** Press anywhere and drag; hover to read. Positions are in pixels of the root element. */

/** Call `press(x, y, phase, shift)` with phase press, drag or done, and `hover(x, y)` or `hover(null)`. */
export function attachDrag(frame, { press, hover }) {
  const { root } = frame;
  root.style.touchAction = "none";
  root.style.cursor = "crosshair";
  root.style.userSelect = "none";
  let held = null;
  let corner = null;
  /** @type {[number, number]} */
  let last = [0, 0];
  const local = (event) => {
    // While dragging the page below changes with every move: the corner is asked for once.
    const { left, top } = corner ?? root.getBoundingClientRect();
    last = [event.clientX - left, event.clientY - top];
    return last;
  };
  frame.on(root, "pointerdown", (event) => {
    if (event.button !== 0 || held !== null) return;
    corner = root.getBoundingClientRect();
    held = event.pointerId;
    root.setPointerCapture(held);
    press(...local(event), "press", event.shiftKey);
  });
  frame.on(root, "pointermove", (event) => {
    if (held === null) hover(...local(event));
    else if (event.pointerId === held) press(...local(event), "drag", event.shiftKey);
  });
  const release = (event) => {
    if (event.pointerId !== held) return;
    held = null;
    const at = event.type === "pointerup" ? local(event) : last;
    corner = null;
    press(...at, "done", event.shiftKey);
  };
  frame.on(root, "pointerup", release);
  frame.on(root, "pointercancel", release);
  frame.on(root, "lostpointercapture", release);
  frame.on(root, "pointerleave", () => held === null && hover(null));
}
