/** A small histogram whose bars are chosen by dragging over them, or by two handles with the keyboard. */

import { h } from "../core/dom.js";
import { assign, node } from "../draw/svg.js";

const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -4, PageUp: 4 };

/**
 * Make a brush. `onchange(range, done)` is called with the first and the last bar chosen, or null for all.
 * @param {string} label
 * @param {(range: number[] | null, done: boolean) => void} onchange
 */
export function createBrush(label, onchange) {
  const bars = ["all", "kept"].map((name) => node("path", { class: `bars-${name}` }));
  const svg = node("svg", { preserveAspectRatio: "none", "aria-hidden": "true" }, ...bars);
  const shade = h("div", { class: "brush-range" });
  const handles = ["from", "to"].map((end, i) =>
    h("div", {
      class: "brush-handle",
      role: "slider",
      tabindex: "0",
      "aria-label": `${label}, ${end}`,
      onkeydown: (event) => key(event, i),
    }),
  );
  const el = h("div", { class: "brush", role: "group", "aria-label": label }, svg, shade, handles);
  let count = 1;
  let range = null;
  let name = (edge) => String(edge);
  let drag = null;
  mark(); // a slider has a value before the first counts are there

  /** Bars by their heights, in a box of as many units as bars; the root keeps small counts visible. */
  function outline(heights, most) {
    return heights
      .map((height, i) => {
        const top = height > 0 ? 1 - Math.max(0.06, Math.sqrt(height / most)) : 1;
        return height > 0 ? `M${i + 0.08} 1V${top}H${i + 0.92}V1Z` : "";
      })
      .join("");
  }

  /** Show counts of all and of the kept samples; `named(edge)` says what an edge is. */
  function set(given) {
    const [all, kept] = [Array.from(given.all), Array.from(given.kept)];
    [count, range, name] = [all.length, given.range, given.named];
    svg.setAttribute("viewBox", `0 0 ${count} 1`);
    const most = Math.max(1, ...all);
    bars[0].setAttribute("d", outline(all, most));
    bars[1].setAttribute("d", outline(kept, most));
    mark();
  }

  function mark() {
    const [first, last] = range ?? [0, count - 1];
    shade.style.left = `${(100 * first) / count}%`;
    shade.style.width = `${(100 * (last + 1 - first)) / count}%`;
    el.classList.toggle("chosen", Boolean(range));
    [first, last + 1].forEach((edge, i) => {
      handles[i].style.left = `${(100 * edge) / count}%`;
      const limits = i ? [first + 1, count] : [0, last];
      const said = { "aria-valuemin": limits[0], "aria-valuemax": limits[1], "aria-valuenow": edge };
      assign(handles[i], { ...said, "aria-valuetext": name(edge) });
    });
  }

  function choose(first, last, done) {
    range = first <= 0 && last >= count - 1 ? null : [Math.max(0, first), Math.min(last, count - 1)];
    mark();
    onchange(range, done);
  }

  function key(event, i) {
    if (["Delete", "Backspace"].includes(event.key)) return (event.preventDefault(), choose(0, count - 1, true));
    const [first, last] = range ?? [0, count - 1];
    const far = { Home: -count, End: count }[event.key];
    const step = STEPS[event.key] ?? far;
    if (!step) return undefined;
    event.preventDefault();
    event.stopPropagation();
    if (i === 0) return choose(Math.min(Math.max(0, first + step), last), last, true);
    return choose(first, Math.max(Math.min(count - 1, last + step), first), true);
  }

  const barAt = ({ clientX }) => {
    const box = el.getBoundingClientRect();
    return Math.min(count - 1, Math.max(0, Math.floor(((clientX - box.left) / box.width) * count)));
  };

  el.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const at = barAt(event);
    const held = range && range[1] > range[0] && at > range[0] && at < range[1];
    drag = { at, from: held ? range : null, last: at, was: range };
    el.setPointerCapture(event.pointerId);
    event.preventDefault();
    if (!held) choose(at, at, false);
  });
  el.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const at = barAt(event);
    if (at === drag.last) return;
    drag.last = at;
    if (drag.from) {
      const by = Math.min(Math.max(at - drag.at, -drag.from[0]), count - 1 - drag.from[1]);
      choose(drag.from[0] + by, drag.from[1] + by, false);
    } else choose(Math.min(drag.at, at), Math.max(drag.at, at), false);
  });
  const finish = () => {
    if (!drag) return;
    const { at, last, was } = drag;
    drag = null;
    // A second press on the only bar takes the choice back.
    const again = at === last && was && was[0] === at && was[1] === at;
    if (again) choose(0, count - 1, true);
    else if (at === last) choose(at, at, true);
    else onchange(range, true);
  };
  el.addEventListener("pointerup", finish);
  el.addEventListener("pointercancel", finish);
  return { el, set, dragging: () => Boolean(drag) };
}
