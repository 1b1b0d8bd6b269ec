// How much of some long work is done, how long it will take, and a way to stop it.

import { button, h, show, write } from "../core/dom.js";

/** Seconds in words: "5 s", "2 min", "1.5 h". */
export function duration(seconds) {
  if (seconds < 1) return "1 s";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/**
 * A line with a bar, words and a stop button, for the work behind requests of a kind; hidden while there is none.
 * @param {any} app
 * @param {string} kind
 * @param {(answer: any) => string} words
 * @param {(answer: any) => void} onend
 */
export function createProgress(app, kind, words, onend = () => {}) {
  const bar = h("progress", { max: "1", "aria-label": "Share that is done" });
  const text = h("span", { class: "progress", role: "status" });
  const stop = button("Stop", () => app.stop(kind), { class: "tool" });
  const el = h("p", { class: "long-work", hidden: true }, bar, text, stop);

  function receive(answer) {
    const going = answer.progress !== undefined;
    show(el, going);
    if (!going) return onend(answer);
    const left = answer.seconds_left;
    const rest = left === null || left === undefined ? "" : ` · ${duration(left)} left`;
    if (answer.progress > 0) bar.value = answer.progress;
    else bar.removeAttribute("value");
    return write(
      text,
      `${words(answer)}${answer.progress > 0 ? ` ${Math.round(100 * answer.progress)} %` : ""}${rest}`,
    );
  }

  return { el, destroy: app.on(`${kind} progress`, receive) };
}
