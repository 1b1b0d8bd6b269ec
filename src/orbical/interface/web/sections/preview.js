// Updates that come by themselves wait until the pointer is away: nothing may move under it.
import { button, fill, h, show, uid, write } from "../core/dom.js";
import { copyText } from "../core/downloads.js";
import { sentence } from "../core/text.js";
import { createSelect } from "./frame.js";
import { duration } from "./progress.js";

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

const POLL_MS = 700;
const PHASES = { finished: "Scan finished", stopped: "Scan stopped", failed: "Scan failed" };

/**
 * The strip below the bar, of a first look or of a scan that grows; it outlives the sections, which are made anew for a
 * finer group. Its `selection` names the scan.
 * @param {HTMLElement} el
 * @param {{ request: Function, on: Function, root: HTMLElement, selection: () => any, refresh: () => void,
 *   reload: () => void }} app
 */
export function createPreview(el, { request, on, root, selection, refresh, reload }) {
  const said = h("p", { class: "found", role: "status" });
  const bar = h("progress", { max: "1", "aria-label": "Share of the scan that is done" });
  const share = h("span", { class: "share" });
  const stop = button("Stop", () => act(stop.dataset.action), { class: "tool" });
  const held = h(
    "p",
    { class: "held", hidden: true },
    "More results are ready. They appear when the pointer leaves the plots.",
  );
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  const id = uid("settings");
  const opener = button("Settings", () => open(el.dataset.open !== "true"), {
    class: "tool",
    "aria-controls": id,
    "aria-expanded": "false",
  });
  const list = h("dl", { class: "preview-settings" });
  const command = h("code", { tabindex: "0" });
  const copy = button("Copy", () => copyText(command.textContent).then(() => write(copy, "Copied")), { class: "tool" });
  const place = h("p", { class: "quiet-text" });
  const more = h(
    "div",
    { class: "more", id, hidden: true },
    list,
    h("p", { class: "in-full" }, "To scan everything: ", command, copy),
    place,
  );
  fill(
    el,
    h("div", { class: "strip" }, said, h("div", { class: "going" }, bar, share, stop, opener)),
    trouble,
    held,
    more,
  );

  el.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || more.hidden) return;
    event.stopPropagation(); // the page would clear the subset
    open(false);
    opener.focus();
  });

  const selects = new Map();
  const quiet = createQuietUpdates(root, (waiting) => show(held, waiting));
  let timer = 0;
  let seen = null;

  function open(on) {
    el.dataset.open = String(on);
    opener.setAttribute("aria-expanded", String(on));
    show(more, on);
  }

  const ask = (extra = {}) => request("preview", { selection: selection(), ...extra });
  const act = (action) => ask({ action });

  function receive(answer) {
    clearTimeout(timer);
    show(el, true);
    show(opener, Boolean(answer.settings));
    if (answer.phase) {
      write(said, answer.settings ? answer.sentence || "Scanning …" : sentence(answer.sentence));
      progress(answer);
      follow(answer);
    }
    if (answer.settings) {
      settings(answer.settings);
      write(command, answer.command);
      write(place, `Saved in ${answer.path}`);
    }
    show(trouble, Boolean(answer.error));
    write(trouble, answer.error ?? "");
    if (answer.phase === "scanning" || !answer.phase) timer = window.setTimeout(ask, POLL_MS);
  }

  function progress({ phase, share: part, seconds_left: left, total, settings: own }) {
    const going = phase === "scanning";
    show(bar, going);
    bar.value = part;
    const rest = left === null ? "" : ` · ${duration(left)} left`;
    write(share, going ? `${Math.floor(100 * part)} % of ${total} samples${rest}` : PHASES[phase]);
    show(stop, Boolean(own) && (going || phase === "stopped"));
    stop.dataset.action = going ? "stop" : "resume";
    write(stop, going ? "Stop" : "Continue");
  }

  /** Show what is new: other values in the same plots, or other plots for another group. */
  function follow({ version, look }) {
    if (!seen || version === seen.version) return;
    const anew = look !== seen.look;
    seen = { version, look };
    quiet.add(anew ? reload : refresh);
  }

  function settings(given) {
    const guessed = given.filter((one) => one.guessed).length;
    write(opener, guessed ? `Settings · ${guessed} guessed` : "Settings");
    for (const one of given) {
      const row = selects.get(one.name) ?? made(one);
      row.select.set(one.choices, one.value);
      row.select.select.disabled = one.choices.length < 2;
      write(row.why, `${one.guessed ? "Guessed: " : ""}${one.why}`);
      row.el.classList.toggle("guessed", one.guessed);
    }
  }

  function made({ name, title }) {
    const select = createSelect(title, (value) => ask({ settings: { [name]: value } }));
    const why = h("dd", {});
    const row = { select, why, el: h("div", {}, h("dt", {}, select.el), why) };
    selects.set(name, row);
    list.append(row.el);
    return row;
  }

  const off = on("preview", receive);
  return {
    /** What the page shows now. */
    at: (shown) => ((seen = shown), ask()),
    destroy: () => (show(el, false), off(), quiet.destroy(), clearTimeout(timer)),
  };
}
