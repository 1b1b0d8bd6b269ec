// Help that opens on `?`: what each section shows, the keys, and the words.

import { button, h, show, uid, write } from "../core/dom.js";
import { glossary, keyTable, tour } from "./help_text.js";

/** A modal dialog with three parts. */
export function createHelp(root) {
  const id = uid("help");
  const close = button("Close", () => dialog.close(), { class: "close" });
  const pairs = (list) =>
    h(
      "dl",
      {},
      list.map(([word, text]) => h("div", {}, h("dt", {}, word), h("dd", {}, text))),
    );
  const keys = h(
    "table",
    {},
    h(
      "tbody",
      {},
      keyTable.map(([key, text]) =>
        h(
          "tr",
          {},
          h(
            "th",
            { scope: "row" },
            key.map((one) => (one === "…" ? "…" : h("kbd", {}, one))),
          ),
          h("td", {}, text),
        ),
      ),
    ),
  );
  const dialog = h(
    "dialog",
    { class: "help", "aria-labelledby": id },
    h("header", {}, h("h2", { id }, "How to read this page"), close),
    h(
      "div",
      { class: "help-body", tabindex: "0", role: "region", "aria-label": "Help" },
      h(
        "p",
        { class: "lead" },
        "The left half shows all samples, the right half one of them. All plots are linked: select a sample in the embedding or the list, then drag along its orbit.",
      ),
      h(
        "div",
        { class: "help-columns" },
        h("section", {}, h("h3", {}, "Sections"), pairs(tour)),
        h("section", {}, h("h3", {}, "Keys"), keys),
        h("section", {}, h("h3", {}, "Glossary"), pairs(glossary)),
      ),
    ),
  );
  const offered = button("", null, { class: "tool", hidden: true });
  close.before(offered);

  /** Offer something else in the bar of the dialog, which it closes. */
  function offer(text, begin) {
    show(offered, true);
    write(offered, text);
    offered.onclick = () => (dialog.close(), begin());
  }

  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  root.append(dialog);
  return { offer, open: () => dialog.open || dialog.showModal(), destroy: () => dialog.remove() };
}
