// The subset as a set: undo and redo, names, and how sets join.

import { button, fill, h, show, write } from "../core/dom.js";
import { attachPopover } from "../core/popover.js";
import { sentence, whole } from "../core/text.js";
import { createSwitch } from "./frame.js";

const JOINS = [
  ["add", "add", "Add these samples to the subset"],
  ["keep", "keep only", "Keep only those of the subset that are in this set"],
  ["remove", "take out", "Take these samples out of the subset"],
];
const MOST_NAME = 80;

/** Two arrows and a menu, to be put beside the count of the subset. */
export function createSubsetMenu(app) {
  const { sets, names, undo } = app;
  const step = (sign, title, keys, go) =>
    button(sign, go, { class: "tool icon", title: `${title}  ${keys}`, "aria-label": title });
  const back = step("↶", "Undo the change of the subset", "Ctrl+Z", undo.undo);
  const forth = step("↷", "Redo the change of the subset", "Ctrl+Shift+Z", undo.redo);
  const opener = button("Sets ▾", null, { class: "tool sets", title: "Save, combine and choose sets of samples" });
  const el = h("span", { class: "subset-menu", "data-transient": true }, back, forth, opener);

  const status = h("p", { class: "status", role: "status" });
  const unsaved = h("p", { class: "quiet-text", hidden: true });
  const none = h("p", { class: "quiet-text" }, `No set is saved. Lasso or filter ${app.noun}, then save them.`);
  const list = h("ul", { class: "sets-list" });
  const name = h("input", { type: "text", maxlength: MOST_NAME, "aria-label": "Name of the set", placeholder: "name" });
  const save = h("button", { type: "submit", class: "tool" }, "Save as");
  const form = h("form", { class: "menu-row", onsubmit: saved }, name, save);
  const invert = button(
    "Invert",
    () => choose({ difference: ["", { shown: true }] }, "new", { also: { filter: [] } }),
    {
      class: "tool",
      title: "Choose the samples that are not shown now, and clear the filters",
    },
  );
  const lasso = createSwitch(
    "What a lasso does",
    [["new", "new", "What you circle becomes the subset"], ...JOINS],
    (how) => sets.setMode(how),
  );

  function choose(recipe, how, more = {}) {
    sets.choose(recipe, how, more).then(
      ({ count }) => say(`${whole(count)} ${app.noun}.`),
      (error) => say(error.message),
    );
  }

  function saved(event) {
    event.preventDefault();
    const wanted = name.value.trim();
    if (!wanted) return;
    names.save(wanted).then(
      () => (name.value = ""),
      (error) => say(error.message),
    );
  }

  function say(text) {
    write(status, text);
    app.announce(text);
  }

  function row({ name: called, hash, count }) {
    const now = hash === app.store.get().subset;
    return h(
      "li",
      {},
      button(called, () => choose(hash, "new"), {
        class: "item",
        title: "Show these samples",
        "aria-pressed": String(now),
      }),
      h("span", { class: "count" }, whole(count)),
      JOINS.map(([how, words, title]) =>
        button(words, () => choose(hash, how), { class: "link", title, "aria-label": `${title}: ${called}` }),
      ),
      button("delete", () => names.remove(called), { class: "link", "aria-label": `Delete the name ${called}` }),
    );
  }

  function draw(trouble = "") {
    const { undo: before, redo: after } = undo.can();
    back.disabled = !before;
    forth.disabled = !after;
    save.disabled = !app.store.get().subset && !app.store.get().filter.length;
    lasso.set(sets.mode());
    fill(list, names.list().map(row));
    show(list, names.list().length > 0);
    show(none, !names.list().length);
    show(unsaved, Boolean(names.unsaved()));
    write(unsaved, names.unsaved() ? `Names last while this is open: ${names.unsaved()}.` : "");
    if (trouble) say(sentence(trouble));
  }

  attachPopover(opener, {
    label: "Sets of samples",
    content() {
      names.reload();
      write(status, "");
      draw();
      return [
        h("div", { class: "menu-row" }, h("span", {}, "Lasso"), lasso.el),
        h("div", { class: "menu-row" }, form, invert),
        list,
        none,
        unsaved,
        status,
      ];
    },
  });
  const stops = [
    undo.on(() => draw()),
    names.on(draw),
    sets.onmode(() => draw()),
    app.store.subscribe(["subset", "filter"], () => draw()),
  ];
  names.reload();
  draw();
  return { el, destroy: () => stops.forEach((stop) => stop()) };
}
