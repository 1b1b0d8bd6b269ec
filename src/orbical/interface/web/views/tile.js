// A picture among others that a click shows alone.

import { h } from "../core/dom.js";
import { modelInk } from "../draw/colors.js";
import { textWidth } from "../draw/svg.js";

const [SIZE, LEAST, BOLD] = [11, 9, 650]; // of letters

/** The name above a picture of a width, in the color of its model: in smaller letters where it is long, then cut. */
export function tileCaption(name, side, color = null) {
  const fits = (SIZE * side) / textWidth(name, SIZE, BOLD);
  const made = h("span", { title: fits < LEAST ? name : null }, name);
  Object.assign(made.style, {
    display: "block",
    maxWidth: `${side}px`,
    fontSize: `${Math.max(Math.min(fits, SIZE), LEAST)}px`,
    lineHeight: "14px",
    overflow: "hidden",
    textOverflow: "ellipsis",
    whiteSpace: "nowrap",
  });
  if (color) Object.assign(made.style, { color: modelInk(color), fontWeight: BOLD });
  return made;
}

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
