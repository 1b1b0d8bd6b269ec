// The frame of a section: heading, a sentence that explains it, controls, and its states.

import { fill, h, show, uid, write } from "../core/dom.js";
import { attachPopover } from "../core/popover.js";
import { sentence } from "../core/text.js";
import { node } from "../draw/svg.js";

const CORNERS = "M2 5V2h3M9 2h3v3M12 9v3H9M5 12H2V9";

/** Make a section: `hint` is the sentence behind (i); returns its parts and its states. */
export function createFrame({ name, title, hint }) {
  const id = uid(name);
  const heading = h("h3", { id }, title);
  const note = h("p", { class: "note" });
  const info = h("button", { type: "button", class: "info", title: hint, "aria-label": `About ${title}` }, "i");
  const controls = h("div", { class: "controls" });
  const stage = () => el.dispatchEvent(new CustomEvent("stage", { bubbles: true, detail: name }));
  const enlarge = h("button", {
    type: "button",
    class: "tool icon enlarge",
    onclick: stage,
    "data-transient": "",
    "aria-label": `Enlarge ${title}`,
  });
  enlarge.append(node("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, node("path", { d: CORNERS })));
  const head = h("header", {}, h("div", { class: "names" }, heading, info, note), controls, enlarge);
  const bare = ({ target }) => target instanceof Element && !target.closest("button, label, select, input, .popover");
  head.addEventListener("mousedown", (event) => {
    if (event.detail > 1 && bare(event)) event.preventDefault(); // a double click selects no word
  });
  head.addEventListener("dblclick", (event) => {
    if (bare(event)) stage();
  });
  const body = h("div", { class: "body" });
  const skeleton = h("div", { class: "skeleton", "aria-hidden": "true" });
  const message = h("div", { class: "message", role: "status", hidden: true });
  const el = h(
    "section",
    { class: `section ${name}`, tabindex: "-1", "aria-labelledby": id, "aria-busy": "true" },
    head,
    h("div", { class: "room" }, body, skeleton, message), // below the header, however many lines it has
  );
  attachPopover(info, { label: `About ${title}`, kind: "hint", content: () => h("p", {}, hint) });

  /** Ready: show the body. Waiting: the skeleton. A text: say why there is nothing, and nothing else. */
  function state(kind, text) {
    el.setAttribute("aria-busy", String(kind === "loading"));
    el.dataset.state = kind;
    show(skeleton, kind === "loading");
    const nothing = kind === "empty" || kind === "error";
    show(message, nothing);
    body.classList.toggle("away", kind === "loading" || nothing);
    if (nothing) write(note, "");
    if (text)
      fill(message, kind === "error" ? h("strong", {}, "Could not display this section") : null, h("p", {}, text));
  }

  state("loading");
  return {
    el,
    body,
    controls,
    state,
    note: (text) => write(note, text),
  };
}

/**
 * Whether an answer can be drawn. If not, the frame says why: an error, what is not available, or `nothing`, the
 * words for an answer that is empty.
 * @param {any} frame
 * @param {any} answer
 * @param {string | false | undefined} nothing
 */
export function drawable(frame, answer, nothing = "") {
  if (!answer) return false;
  const why = answer.available === false ? sentence(`${answer.reason}.`) : nothing;
  if (answer.error) frame.state("error", answer.error);
  else if (why) frame.state("empty", why);
  else frame.state("ready");
  return !answer.error && !why;
}

/**
 * A drop-down menu with a label; `set(options, value)` where options are [value, text].
 * @param {string} label
 * @param {(value: string) => void} onchange
 * @param {{ title?: string, quiet?: boolean }} look
 */
export function createSelect(label, onchange, { title, quiet } = {}) {
  const select = h("select", { onchange: () => onchange(select.value), title });
  const el = h("label", { class: quiet ? "field quiet" : "field" }, h("span", {}, label), select);

  function set(options, value) {
    const text = JSON.stringify(options);
    if (select.dataset.options !== text) {
      select.replaceChildren(...options.map(([key, words]) => h("option", { value: key }, words)));
      select.dataset.options = text;
    }
    select.value = value;
  }

  return { el, select, set };
}

/** A switch between a few choices, as radio buttons side by side. */
export function createSwitch(label, choices, onchange) {
  const name = uid("switch");
  const inputs = choices.map(([value, words, title]) => {
    const input = h("input", { type: "radio", name, value, onchange: () => onchange(value) });
    const span = h("span", {}, words);
    return { value, input, span, el: h("label", { title }, input, span) };
  });
  const el = h("div", { class: "switch", role: "radiogroup", "aria-label": label }, inputs);

  function set(value, texts = {}) {
    for (const one of inputs) {
      one.input.checked = one.value === value;
      if (texts[one.value]) write(one.span, texts[one.value]);
    }
  }

  return { el, set, disable: (value, off) => (inputs.find((one) => one.value === value).input.disabled = off) };
}
