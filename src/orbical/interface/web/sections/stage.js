// The stage: one section over the whole window. A sample keeps its orbit, input and answer together.

import { h } from "../core/dom.js";

const TOGETHER = ["individual", "input", "detail"];
const START = "individual";

/** What stands beside an element, up to the page: it waits while the element covers it. */
function beside(el, root) {
  const found = [];
  for (let at = el; at !== root; at = at.parentElement) found.push(...at.parentElement.children);
  return found.filter((other) => !other.contains(el) && !other.matches("dialog, .hidden"));
}

/** An empty box in the place of an element, so that the page behind stays as it is. */
function standIn(el) {
  const { gridColumn, gridRow } = getComputedStyle(el);
  const gap = h("div", {});
  Object.assign(gap.style, { gridColumn, gridRow, height: `${el.offsetHeight}px` });
  return gap;
}

/** Follow the field `stage` of the selection; `toggle` is what the button, the key and a double click do. */
export function createStage(shell, app) {
  const { root, store } = app;
  /** @type {any} what is enlarged, and what waits behind it */
  let shown = null;

  const sectionOf = (name) => [...root.querySelectorAll(".section")].find((el) => el.classList[1] === name);
  const buttonOf = (section) => section.querySelector(":scope > header > .enlarge");

  function press(section, on) {
    const [enlarge, title] = [buttonOf(section), section.querySelector("h3").textContent];
    enlarge.setAttribute("aria-pressed", String(on));
    enlarge.setAttribute("aria-label", on ? `Shrink ${title}` : `Enlarge ${title}`);
    enlarge.title = on ? "Back to the page  f or Esc" : "Enlarge to the whole window  f";
  }

  function open(name) {
    const section = sectionOf(name);
    if (!section) return;
    const holder = TOGETHER.includes(name) ? shell.detail : section;
    const gap = standIn(holder);
    shown = { holder, gap, name, waiting: beside(holder, root).filter((other) => !other.inert) };
    holder.before(gap);
    holder.classList.add("staged");
    holder.dataset.stage = name;
    // The top layer: no box of a notebook or of the page cuts it off.
    holder.popover = "manual";
    holder.showPopover();
    shown.waiting.forEach((other) => (other.inert = true));
    press(section, true);
    if (!holder.contains(document.activeElement)) buttonOf(section).focus({ preventScroll: true });
  }

  function close() {
    const { holder, gap, waiting, name } = shown;
    const focused = holder.contains(document.activeElement) ? document.activeElement : null;
    shown = null;
    waiting.forEach((other) => (other.inert = false));
    holder.hidePopover();
    holder.removeAttribute("popover");
    holder.classList.remove("staged");
    delete holder.dataset.stage;
    gap.remove();
    const section = sectionOf(name);
    if (!section) return;
    press(section, false);
    (focused?.checkVisibility?.() ? focused : buttonOf(section)).focus({ preventScroll: true });
  }

  function follow({ stage }) {
    if (stage === (shown?.name ?? "")) return;
    if (shown) close();
    if (stage) open(stage);
  }

  /** The section that a reader means without a name: that of the focus, else that under the pointer. */
  function meant() {
    const section = document.activeElement?.closest(".section") ?? root.querySelector(".section:hover");
    return section && root.contains(section) ? section.classList[1] : START;
  }

  const toggle = (name) => app.select({ stage: shown ? (name === shown.name ? "" : name) : name });
  const onstage = (event) => toggle(event.detail);
  root.addEventListener("stage", onstage);
  const stop = store.subscribe(["stage"], follow);
  for (const section of root.querySelectorAll(".section")) press(section, false);
  follow(store.get());
  return {
    toggle: () => toggle(shown?.name ?? meant()),
    /** Close; false where nothing is enlarged, or a menu on it is open and closes first. */
    close() {
      if (!shown || root.querySelector(".popover:popover-open")) return false;
      app.select({ stage: "" });
      return true;
    },
    destroy() {
      stop();
      root.removeEventListener("stage", onstage);
      if (shown) close();
    },
  };
}
