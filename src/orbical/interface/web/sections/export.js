// Export: pictures, data, the subset, the link.

import { button, fill, h } from "../core/dom.js";
import { NARROWEST, WIDEST, figureOf, figureWidth } from "../core/page_svg.js";
import { copyText, download, pngBlob, svgBlob } from "../core/downloads.js";
import { attachPopover } from "../core/popover.js";
import { createSelect } from "./frame.js";
import { createProgress } from "./progress.js";

const DATA = {
  csv: ["Values as CSV", "The metric at every position, for the subset and for the selected sample"],
  indices: ["Subset as indices", "Indices of the samples in the subset, one per line"],
  parquet: ["Table as Parquet", "One row per sample, with its embedding coordinates, for other tools"],
  report: ["Report as one HTML file", "This page with its data, for sharing"],
};

const ONCE =
  " It opens this view once, in another browser of yours on this machine, while orbical view runs. Another person needs " +
  "the scan, or a report.";

/** The export menu behind its button. */
export function createExport(opener, app) {
  let what = "";
  let [width, scale] = ["", "2"];
  const status = h("p", { class: "export-status", role: "status" });

  function parts() {
    const found = [...app.root.querySelectorAll(".section:not([hidden])")];
    const { stage } = app.store.get();
    return [
      ["", stage ? "enlarged section" : "whole page"],
      ...found.map((el) => [el.classList[1], el.querySelector("h3").textContent]),
    ];
  }

  function target() {
    if (what) return app.root.querySelector(`.section.${what}`);
    return app.root.querySelector(".staged") ?? app.root.querySelector(".page");
  }

  function picture(kind) {
    menu.close();
    const el = target();
    const size = { width: figureWidth(width, el.getBoundingClientRect().width), scale: Number(scale) };
    const name = `orbical-${what || app.store.get().stage || "view"}.${kind}`;
    figureOf(el, app.root, size, () => app.sections.embedding.repaint())
      .then((svg) => (kind === "svg" ? svgBlob(svg) : pngBlob(svg, size.scale)))
      .then((blob) => download(blob, name))
      .catch((error) => app.announce(error.message));
  }

  function data(kind) {
    fill(status);
    app.request("export", { what: kind });
  }

  function copy({ token = "" }) {
    const text = app.history.link(app.store.get(), token);
    copyText(text).then(
      () => fill(status, `Link copied.${token ? ONCE : ""}`),
      () => fill(status, h("input", { class: "copy", readonly: true, "aria-label": "Link", value: text })),
    );
  }

  function content() {
    const select = createSelect("Figure", (value) => (what = value));
    select.set(parts(), what);
    const wide = h("input", {
      type: "number",
      min: NARROWEST,
      max: WIDEST,
      placeholder: "as shown",
      value: width,
      title: "The figure is laid out at this width, in pixels; empty for the width on the screen",
      oninput: () => (width = wide.value),
    });
    const times = createSelect("Scale", (value) => (scale = value), { title: "Pixels of a PNG to one of the width" });
    times.set(
      ["1", "2", "3", "4"].map((each) => [each, `${each}×`]),
      scale,
    );
    fill(status);
    const item = (kind) => button(DATA[kind][0], () => data(kind), { class: "item", title: DATA[kind][1] });
    const known = app.state.exports ?? ["csv", "indices", "parquet", "report"];
    return [
      h(
        "div",
        { class: "menu-row" },
        select.el,
        h("label", { class: "field" }, h("span", {}, "Width in px"), wide),
        times.el,
        button("PNG", () => picture("png"), { class: "tool" }),
        button("SVG", () => picture("svg"), { class: "tool" }),
      ),
      h(
        "div",
        { class: "menu-list" },
        known.filter((kind) => DATA[kind]).map(item),
        button("Copy link to this view", () => (app.state.link ? app.request("link") : copy({})), { class: "item" }),
      ),
      status,
      working.el,
    ];
  }

  const menu = attachPopover(opener, { label: "Export", content });
  const working = createProgress(
    app,
    "export",
    ({ note }) => (note ? `Preparing: ${note} …` : "Preparing …"),
    (answer) => answer.stopped && fill(status, "Stopped."),
  );
  const stopLinks = app.on("link", copy);
  const stop = app.on("export", (answer) => {
    if (answer.error) return fill(status, answer.error);
    fill(status, `Saved ${answer.filename}.`);
    return download(new Blob([answer.arrays.file.data], { type: answer.type }), answer.filename);
  });
  /** Open the menu, on the enlarged section where there is one: what is behind it waits. */
  function open() {
    app.root.querySelector(".staged")?.append(menu.panel);
    menu.open();
  }

  menu.panel.addEventListener("toggle", (event) => event.newState === "closed" && opener.after(menu.panel));
  return { open, destroy: () => (stop(), stopLinks(), working.destroy()) };
}
