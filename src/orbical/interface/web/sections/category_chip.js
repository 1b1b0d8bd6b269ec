// Categories of a column: bars that are buttons, or a menu with a search where there are many.

import { button, fill, h, write } from "../core/dom.js";
import { attachPopover } from "../core/popover.js";
import { picked } from "../core/selection_rules.js";
import { whole } from "../core/text.js";
import { shortened } from "../draw/format.js";

const FEW = 12; // categories that are buttons beside each other, if their names are short
const LETTERS = 40;
const MOST_LISTED = 200;

/** Make the categories of a chip; `chosen()` are the keys now, `onchange(keys)` takes others, none for all. */
export function createCategories(label, { keys, names }, chosen, onchange) {
  const few = keys.length <= FEW && names.join("").length <= LETTERS;
  return few
    ? createBars(label, { keys, names }, chosen, onchange)
    : createMenu(label, { keys, names }, chosen, onchange);
}

function createBars(label, { keys, names }, chosen, onchange) {
  const cells = keys.map((key, i) => {
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    const word = h("span", { class: "word" }, names[i]);
    const el = button([bar, word], () => onchange(picked(chosen(), key, keys)), {
      class: "category",
      "aria-pressed": "false",
    });
    return { el, bar };
  });
  const el = h("div", { class: "categories", role: "group", "aria-label": label }, cells);

  function set({ all, kept }) {
    const values = chosen();
    const most = Math.max(1, ...all);
    cells.forEach((cell, i) => {
      cell.el.setAttribute("aria-pressed", String(values.includes(keys[i])));
      cell.el.title = `${names[i]}: ${whole(kept[i] ?? 0)} of ${whole(all[i] ?? 0)}`;
      cell.bar.style.height = `${Math.round(16 * Math.sqrt((kept[i] ?? 0) / most))}px`;
    });
  }

  return { el, set };
}

function createMenu(label, { keys, names }, chosen, onchange) {
  const open = button("", null, { class: "toggle", title: label });
  const el = h("div", { class: "categories many", role: "group", "aria-label": label }, open);
  /** @type {{ all: number[], kept: number[] }} */
  let given = { all: [], kept: [] };
  attachPopover(open, { label, content: () => content() });

  /** The categories that any sample has; of a thousand classes, data often have few. */
  function occurring() {
    const values = chosen();
    const all = keys.map((_, i) => i);
    return given.all.length ? all.filter((i) => given.all[i] > 0 || values.includes(keys[i])) : all;
  }

  function content() {
    const search = h("input", {
      type: "search",
      placeholder: `Search ${whole(occurring().length)}`,
      "aria-label": `Search ${label}`,
      oninput: () => list(),
    });
    const rows = h("div", { class: "checks" });
    const more = h("p", { class: "quiet-text" });
    const clear = button("all", () => (onchange([]), list()), { class: "link" });

    function list() {
      const values = chosen();
      const sought = search.value.trim().toLowerCase();
      const found = occurring().filter((i) => names[i].toLowerCase().includes(sought));
      const first = (i) => (values.includes(keys[i]) ? 0 : 1);
      found.sort((a, b) => first(a) - first(b) || a - b);
      fill(rows, found.slice(0, MOST_LISTED).map(check));
      const left = found.length - MOST_LISTED;
      write(more, found.length ? (left > 0 ? `${whole(left)} more: search for them` : "") : "nothing found");
    }

    function check(i) {
      const input = h("input", {
        type: "checkbox",
        "aria-label": names[i],
        onchange: () => onchange(picked(chosen(), keys[i], keys)),
      });
      input.checked = chosen().includes(keys[i]);
      return h("label", { class: "check" }, input, names[i], h("small", {}, whole(given.kept[i] ?? 0)));
    }

    list();
    return h("div", { class: "category-menu" }, h("div", { class: "search-line" }, search, clear), rows, more);
  }

  function set(next) {
    given = next;
    const values = chosen();
    const one = values.length === 1 ? shortened(names[keys.indexOf(values[0])] ?? "", 18) : "";
    write(open, values.length ? `${one || `${values.length} of ${whole(occurring().length)}`} ▾` : "all ▾");
  }

  return { el, set };
}
