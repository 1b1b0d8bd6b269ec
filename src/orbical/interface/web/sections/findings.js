// Findings: bookmarked views with a title and a note, behind their button. In a report they are for reading only.

import { newId, viewOf } from "../core/saved_list.js";
import { button, fill, h, show, uid, write } from "../core/dom.js";
import { attachPanel } from "../core/popover.js";
import { sentence, singular, whole } from "../core/text.js";

const MOST_TITLE = 200;
const MOST_NOTE = 4000;

/** The panel; it stays open while the page is used. */
export function createFindingsPanel(opener, app) {
  const { findings, story } = app;
  const fixed = Boolean(app.state.report);
  const id = uid("findings");
  const status = h("p", { class: "status", role: "status" });
  const unsaved = h("p", { class: "unsaved", hidden: true });
  const list = h("ol", { class: "findings-list" });
  const adding = h("div", { class: "adding" });
  const panel = h(
    "div",
    {
      class: "findings-panel",
      popover: "manual",
      id,
      "data-transient": true,
      role: "group",
      "aria-label": "Findings",
    },
    h(
      "div",
      { class: "head" },
      h("h2", {}, "Findings"),
      button("Close", () => held.close(), { class: "tool" }),
    ),
    fixed ? null : adding,
    unsaved,
    list,
    status,
  );
  let editing = "";
  let editor = null; // kept while findings arrive: what is typed stays
  const held = attachPanel(opener, panel, {
    begin: () => (findings.reload(), draw()),
    inner: () => Boolean(editing) && (edit(""), true),
  });

  function edit(which) {
    [editing, editor] = [which, null];
    draw();
    (panel.querySelector("form input") ?? panel.querySelector(".adding button"))?.focus();
  }

  /** A title to begin with: the sample, and the position if it was moved. */
  function suggested() {
    const { sample } = app.store.get();
    const { element, position } = app.place();
    const name = app.called(sample) || `${sentence(singular(app.noun))} ${whole(app.number(sample))}`;
    return element === app.group.identity && !position.length ? name : `${name}, ${app.placeName(element, position)}`;
  }

  function form(given) {
    const title = h("input", {
      type: "text",
      maxlength: MOST_TITLE,
      required: true,
      value: given?.title ?? suggested(),
    });
    const note = h("textarea", { rows: 4, maxlength: MOST_NOTE });
    note.value = given?.note ?? "";
    const anew = h("input", { type: "checkbox" });
    const save = (event) => {
      event.preventDefault();
      const view = given && !anew.checked ? given.view : viewOf(app.store.get());
      findings.save({ id: given?.id ?? newId(), title: title.value, note: note.value, view });
      edit("");
    };
    return h(
      "form",
      { onsubmit: save },
      h("label", { class: "field" }, h("span", {}, "Title"), title),
      h("label", { class: "field" }, h("span", {}, "Note"), note),
      given ? h("label", { class: "check" }, anew, "show the present view instead") : null,
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "submit", class: "tool primary" }, "Save"),
        button("Cancel", () => edit(""), { class: "tool" }),
      ),
    );
  }

  function remove(finding, at) {
    findings.remove(finding.id);
    const undo = () => {
      findings.save(finding);
      findings.move(finding.id, at);
      fill(status, "Restored.");
    };
    fill(status, `Deleted “${finding.title}”. `, button("Undo", undo, { class: "link" }));
    panel.querySelector(".adding button")?.focus();
  }

  function entry(finding, at, all) {
    if (editing === finding.id) return h("li", {}, (editor ??= form(finding)));
    const tool = (sign, words, act, off = false) =>
      button(sign, act, {
        class: "tool icon",
        "aria-label": `${words}: ${finding.title}`,
        title: words,
        disabled: off,
      });
    const tools = h(
      "div",
      { class: "buttons tools" },
      tool("↑", "Move up", () => findings.move(finding.id, at - 1), at === 0),
      tool("↓", "Move down", () => findings.move(finding.id, at + 1), at === all.length - 1),
      tool("✎", "Edit", () => edit(finding.id)),
      tool("✕", "Delete", () => remove(finding, at)),
    );
    return h(
      "li",
      { "aria-current": story.at() === finding.id ? "true" : null },
      button(finding.title, () => (held.close(), story.go(at), story.focus()), {
        class: "go",
        title: "Show this view",
      }),
      finding.note ? h("p", { class: "text" }, finding.note) : null,
      fixed ? null : tools,
    );
  }

  function draw() {
    const all = findings.list();
    write(opener, all.length ? `Findings ${all.length}` : "Findings");
    show(opener, !fixed || all.length > 0);
    fill(
      adding,
      editing === "new"
        ? (editor ??= form())
        : button("Bookmark this view", () => edit("new"), { class: "tool primary" }),
    );
    const why = findings.unsaved();
    show(unsaved, Boolean(why));
    write(unsaved, why ? `Not saved: ${why}. Findings last until orbical ends; a report keeps them.` : "");
    fill(list, all.map(entry));
    if (!all.length && !editing)
      fill(list, h("li", { class: "none" }, "None yet. Bookmark what you want to come back to, or to show to others."));
  }

  /** Whoever asks for it, what had the focus has it again, or what now stands in its place. */
  function renew() {
    const focused = panel.contains(document.activeElement) ? document.activeElement : null;
    draw();
    if (!(focused instanceof HTMLElement)) return;
    const label = focused.getAttribute("aria-label");
    const again = label && panel.querySelector(`[aria-label="${CSS.escape(label)}"]:enabled`);
    const heir = panel.contains(focused) ? focused : again || panel.querySelector(".adding button");
    if (heir instanceof HTMLElement) heir.focus();
  }

  function told(error) {
    if (error) fill(status, error);
    renew();
  }

  const stops = [findings.on(told), story.on(renew)];
  findings.reload();
  return {
    toggle: held.toggle,
    destroy: () => (stops.forEach((stop) => stop()), held.destroy()),
  };
}
