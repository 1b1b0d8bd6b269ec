// Panels that open at a button: hints and menus. Closes on Escape and on a click outside.

import { h, uid } from "./dom.js";

const MARGIN = 8;

/** Join a button and a panel; `content(close)` makes the panel's children each time it opens. */
export function attachPopover(button, { label, content, kind = "menu" }) {
  const panel = h("div", {
    class: `popover popover-${kind}`,
    popover: "auto",
    id: uid("panel"),
    role: "group",
    "aria-label": label,
  });
  button.setAttribute("aria-expanded", "false");
  button.setAttribute("aria-controls", panel.id);
  button.after(panel);

  function open() {
    panel.replaceChildren(...[content(close)].flat());
    panel.showPopover();
    place();
  }

  function close() {
    if (panel.matches(":popover-open")) panel.hidePopover();
  }

  function place() {
    const at = button.getBoundingClientRect();
    const box = panel.getBoundingClientRect();
    const left = Math.min(at.left, innerWidth - box.width - MARGIN);
    const below = at.bottom + 4;
    const top = below + box.height > innerHeight - MARGIN ? at.top - box.height - 4 : below;
    panel.style.left = `${Math.max(MARGIN, left)}px`;
    panel.style.top = `${Math.max(MARGIN, top)}px`;
  }

  let wasOpen = false;
  button.addEventListener("pointerdown", () => (wasOpen = panel.matches(":popover-open")));
  button.addEventListener("click", () => {
    if (!wasOpen) open();
    wasOpen = false;
  });
  panel.addEventListener("toggle", (event) => {
    button.setAttribute("aria-expanded", String(event.newState === "open"));
    if (event.newState === "open" && kind === "menu") {
      panel.querySelector("select, button, input, [tabindex='0']")?.focus();
    }
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    event.preventDefault();
    close();
    button.focus();
  });
  return { open, close, panel };
}

/**
 * Join a button and a panel that stays open while the page is used. `begin` fills it when it opens; `inner` may take
 * the key Escape for something in it, and returns whether it did.
 */
export function attachPanel(opener, panel, { begin, inner = () => false }) {
  opener.setAttribute("aria-expanded", "false");
  opener.setAttribute("aria-controls", panel.id);
  opener.after(panel);

  function open() {
    begin();
    panel.showPopover();
    panel.style.top = `${opener.getBoundingClientRect().bottom + 6}px`;
    opener.setAttribute("aria-expanded", "true");
    panel.querySelector("button")?.focus();
  }

  function close() {
    panel.hidePopover();
    opener.setAttribute("aria-expanded", "false");
    opener.focus();
  }

  const toggle = () => (panel.matches(":popover-open") ? close() : open());
  opener.addEventListener("click", toggle);
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    event.preventDefault();
    if (!inner()) close();
  });
  return { toggle, close, destroy: () => (opener.removeEventListener("click", toggle), panel.remove()) };
}
