// Export: pictures, data, the subset, the link.

import { button, fill, h } from "../core/dom.js";
import { pageSvg } from "../core/page_svg.js";
import { copyText, download, pngBlob, svgBlob } from "../core/downloads.js";
import { attachPopover } from "../core/popover.js";
import { createSelect } from "./frame.js";

const DATA = {
  csv: ["Values as CSV", "The metric at every position, for the subset and for the selected sample"],
  indices: ["Subset as indices", "Indices of the samples in the subset, one per line"],
  parquet: ["Table as Parquet", "One row per sample, with its embedding coordinates, for other tools"],
  report: ["Report as one HTML file", "This page with its data, for sharing"],
};

/** The export menu behind its button. */
export function createExport(opener, app) {
  let what = "";
  const status = h("p", { class: "export-status", role: "status" });

  function parts() {
    const found = [...app.root.querySelectorAll(".section:not([hidden])")];
    return [["", "whole page"], ...found.map((el) => [el.classList[1], el.querySelector("h3").textContent])];
  }

  function target() {
    return what ? app.root.querySelector(`.section.${what}`) : app.root.querySelector(".page");
  }

  function picture(kind) {
    menu.close();
    requestAnimationFrame(() => {
      app.sections.embedding.repaint();
      const svg = pageSvg(target());
      const name = `orbical-${what || "view"}.${kind}`;
      if (kind === "svg") return download(svgBlob(svg), name);
      return pngBlob(svg)
        .then((blob) => download(blob, name))
        .catch((error) => app.announce(error.message));
    });
  }

  function data(kind) {
    fill(status, "Preparing …");
    app.request("export", { what: kind });
  }

  function link() {
    const text = app.history.link(app.store.get());
    copyText(text).then(
      () => fill(status, "Link copied."),
      () => fill(status, h("input", { class: "copy", readonly: true, "aria-label": "Link", value: text })),
    );
  }

  function content() {
    const select = createSelect("Figure", (value) => (what = value));
    select.set(parts(), what);
    fill(status);
    const item = (kind) => button(DATA[kind][0], () => data(kind), { class: "item", title: DATA[kind][1] });
    const known = app.state.exports ?? ["csv", "indices", "parquet", "report"];
    return [
      h(
        "div",
        { class: "menu-row" },
        select.el,
        button("PNG", () => picture("png"), { class: "tool" }),
        button("SVG", () => picture("svg"), { class: "tool" }),
      ),
      h(
        "div",
        { class: "menu-list" },
        known.filter((kind) => DATA[kind]).map(item),
        button("Copy link to this view", link, { class: "item" }),
      ),
      status,
    ];
  }

  const menu = attachPopover(opener, { label: "Export", content });
  const stop = app.on("export", (answer) => {
    if (answer.error) return fill(status, answer.error);
    fill(status, `Saved ${answer.filename}.`);
    return download(new Blob([answer.arrays.file.data], { type: answer.type }), answer.filename);
  });
  return { open: menu.open, destroy: stop };
}
