// A picture among others that a click shows alone.

import { h } from "../core/dom.js";

/** A button of a width around caption and picture; `alone` says that no other picture is shown. */
export function tileButton(side, { only, pressed, alone, toggle }, ...children) {
  const attributes = { type: "button", title: alone ? "Show all" : only, "aria-pressed": String(pressed) };
  for (const one of children) one.style.display = "block"; // no line of text, with room for letters below
  const whole = h("button", { ...attributes, onclick: toggle }, ...children);
  Object.assign(whole.style, {
    width: `${side}px`,
    padding: "0",
    border: "0",
    background: "none",
    textAlign: "left",
    cursor: alone ? "zoom-out" : "zoom-in",
    color: "inherit",
  });
  return whole;
}
