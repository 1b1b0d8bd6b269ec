// Pictures side by side on a board: each with its caption; a click shows one alone, another click shows all again.

import { button, fill, h } from "../core/dom.js";
import { onAppearance } from "../draw/canvas.js";
import { isDark, modelInk } from "../draw/colors.js";
import { fittedMiddle, textWidth } from "../draw/svg.js";

const [NAME, GAP, LEAST_SIDE] = [20, 5, 44];
const [SIZE, LEAST, BOLD] = [11, 9, 650]; // of letters

/** The name above a picture of a width, in the color of its model: a long one in smaller letters, then without its middle. */
export function tileCaption(name, side, color = null) {
  const size = Math.min(Math.max((SIZE * side) / textWidth(name, SIZE, BOLD), LEAST), SIZE);
  const words = fittedMiddle(name, side, size, BOLD);
  const made = h("span", { class: "tile-caption", title: words === name ? null : name }, words);
  Object.assign(made.style, { maxWidth: `${side}px`, fontSize: `${size}px` });
  if (color) Object.assign(made.style, { color: modelInk(color), fontWeight: BOLD });
  return made;
}

/** The width of the pictures in a table of `columns` x `rows`, each with a caption and `aspect` times as high. */
export function sideOf(columns, rows, width, height, aspect = 1) {
  const high = (height - GAP * (rows - 1)) / rows - NAME;
  const side = Math.min((width - GAP * (columns - 1)) / columns, high / aspect);
  return Math.max(LEAST_SIDE, Math.floor(side));
}

/** The arrangement of `count` squares that makes them largest. */
export function arranged(count, width, height) {
  const side = (columns) => sideOf(columns, Math.ceil(count / columns), width, height);
  let columns = 1;
  for (let more = 2; more <= count; more += 1) if (side(more) > side(columns)) columns = more;
  return { side: side(columns), columns };
}

/** A mark in a color, or a gradient, and its words. */
export function chip(background, words) {
  const mark = h("i", { class: "chip-mark" });
  mark.style.background = background;
  return h("span", {}, mark, String(words));
}

/** Buttons of which one is pressed, for modes `[name, words, title]`; `set(name)` presses one. */
export function createModes(label, modes, choose) {
  const buttons = modes.map(([mode, words, title]) =>
    button(words, () => choose(mode), { class: "tool", title, "aria-label": `${words}: ${title}` }),
  );
  const el = h("div", { class: "modes", role: "group", "aria-label": label }, buttons);
  const set = (now) => modes.forEach(([name], k) => buttons[k].setAttribute("aria-pressed", String(name === now)));
  return { el, set };
}

/**
 * A board in `el` that is drawn again when its size or the theme changes. `paint(panel, { canvas, caption, side, alone })`
 * draws a panel, which has a `title`, and perhaps a `color` and longer words, `about`.
 */
export function createBoard(el, name, draw, paint) {
  const board = h("div", { class: `${name} board` });
  const stop = new AbortController();
  const watch = new ResizeObserver(() => draw());
  let alone = null;
  let made = "";
  /** @type {any[]} */
  let tiles = [];

  function tile([panel, k], side) {
    if (!panel) return { el: h("span", {}) };
    const canvas = h("canvas", { role: "img", class: "tile-picture" });
    const caption = tileCaption(panel.title, side, panel.color);
    const toggle = () => ((alone = alone === null ? k : null), draw());
    const about = {
      title: alone === null ? `Show only ${panel.about ?? panel.title}` : "Show all",
      "aria-pressed": String(alone === k),
    };
    const whole = h("button", { type: "button", class: "tile", ...about, onclick: toggle }, caption, canvas);
    whole.style.width = `${side}px`;
    whole.classList.toggle("alone", alone !== null);
    return { el: whole, canvas, caption, side, alone: alone === k };
  }

  el.append(board);
  watch.observe(board);
  onAppearance(draw, stop.signal);
  return {
    el: board,
    dark: () => isDark(el),
    /** The width and the height that the pictures have. */
    room() {
      const box = board.getBoundingClientRect();
      return [box.width || 300, Math.max(box.height || 200, 90)];
    },
    /** Show panels in a number of columns, by default in the arrangement that makes them largest; null is a gap. */
    show(panels, columns = 0, aspect = 1) {
      const all = panels.map((panel, k) => [panel, k]);
      const shown = alone === null || !panels[alone] ? all : [all[alone]];
      const [width, height] = this.room();
      const own = shown.length === 1 ? 1 : columns;
      const fitting = own
        ? { columns: own, side: sideOf(own, shown.length / own, width, height, aspect) }
        : arranged(shown.length, width, height);
      board.style.gridTemplateColumns = `repeat(${fitting.columns}, ${fitting.side}px)`;
      const wanted = JSON.stringify([fitting.side, alone, shown.map(([panel, k]) => [k, panel?.title, panel?.color])]);
      if (wanted !== made) {
        made = wanted;
        const focused = board.contains(document.activeElement);
        tiles = shown.map((one) => tile(one, fitting.side));
        fill(board, tiles);
        if (focused) tiles[0].el.focus();
      }
      shown.forEach(([panel], k) => panel && paint(panel, tiles[k]));
    },
    destroy() {
      stop.abort();
      watch.disconnect();
      el.replaceChildren();
    },
  };
}
