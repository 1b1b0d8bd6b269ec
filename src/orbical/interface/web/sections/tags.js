// Tags of the selected sample: the named sets that hold it.

import { button, fill, h, write } from "../core/dom.js";
import { attachPopover } from "../core/popover.js";
import { singular } from "../core/text.js";
import { shortened } from "../draw/format.js";

const MOST_NAME = 80;
const MOST_LETTERS = 24; // of the tags on the button

/** A button that says the tags, and behind it all tags that there are and a field for a new one. */
export function createTags(app) {
  const one = singular(app.noun);
  const title = `Tags of this ${one}; Python reads them with orbical.interface.tags  t`;
  const opener = button("Tag", null, { class: "tool", title });
  const el = h("span", { class: "tags", "data-transient": true }, opener);
  const name = h("input", { type: "text", maxlength: MOST_NAME, placeholder: "new tag", "aria-label": "New tag" });
  const form = h(
    "form",
    { class: "menu-row", onsubmit: add },
    name,
    h("button", { type: "submit", class: "tool" }, "Add"),
  );
  const list = h("div", { class: "checks" });
  /** @type {string[]} */
  let held = [];

  function add(event) {
    event.preventDefault();
    if (name.value.trim()) app.names.tag(name.value.trim(), true);
    name.value = "";
  }

  function check({ name: tag }) {
    const input = h("input", {
      type: "checkbox",
      "aria-label": tag,
      onchange: () => app.names.tag(tag, input.checked),
    });
    input.checked = held.includes(tag);
    return h("label", { class: "check" }, input, tag);
  }

  function draw(/** @type {{ tags?: string[] }} */ { tags = held }) {
    held = tags;
    opener.setAttribute("aria-label", held.length ? `Tags: ${held.join(", ")}` : `Tag this ${one}`);
    write(opener, held.length ? shortened(held.join(", "), MOST_LETTERS) : "Tag");
    fill(list, app.names.list().map(check));
  }

  const menu = attachPopover(opener, { label: "Tags", content: () => (draw({}), [list, form]) });
  const stops = [app.on("sample", ({ tags = [] }) => draw({ tags })), app.on("names", draw)];
  return { el, open: menu.open, destroy: () => stops.forEach((stop) => stop()) };
}
