// The page: a bar, the overview on the left, one sample on the right.

import { button, fill, h, show, write } from "../core/dom.js";
import { node } from "../draw/svg.js";

/** Make the frame of the page; `state(kind, text)` shows the skeleton, the page, or an error. */
export function createShell(root, { onhelp, ontheme, onback }) {
  const menus = h("div", { class: "menus" });
  const name = h("span", { class: "scan-name" }, "Loading …");
  const exporter = button("Export", null, { class: "tool", disabled: true });
  const findings = button("Findings", null, { class: "tool", disabled: true });
  const diagnosis = button("Diagnosis", null, { class: "tool", disabled: true });
  const themer = button("", ontheme, { class: "tool icon theme-toggle" });
  const helper = button("?", onhelp, { class: "tool icon", "aria-label": "Help", title: "Help  ?" });
  const bar = h(
    "header",
    { class: "topbar" },
    h("h1", {}, mark(), "orbical", name),
    menus,
    h("div", { class: "actions" }, diagnosis, findings, exporter, themer, helper),
  );
  const filters = h("section", { class: "filters", "aria-label": "Filters" });
  const banner = h("div", { class: "banner", role: "alert", hidden: true });
  const preview = h("div", { class: "preview", hidden: true, role: "region", "aria-label": "First look" });
  const [said, cover] = [h("p", {}), h("dl", { class: "cover", hidden: true })];
  const headline = h("section", { class: "headline", "aria-label": "Finding", hidden: true }, said, cover);
  const [overview, detail] = [h("div", { class: "overview" }), h("div", { class: "one" })];
  const strip = h("div", { class: "pin-strip" });
  const main = h("main", { class: "main", tabindex: "-1" }, overview, detail, strip);
  const waiting = h(
    "div",
    { class: "waiting", role: "status" },
    h("p", { class: "hidden" }, "Loading"),
    h(
      "div",
      { class: "blocks", "aria-hidden": "true" },
      Array.from({ length: 6 }, () => h("div", { class: "skeleton" })),
    ),
  );
  const spoken = h("div", { class: "hidden", "aria-live": "polite" });
  const page = h("div", { class: "page" }, bar, filters, banner, preview, headline, main, waiting);
  root.append(page, spoken);

  function state(kind, text) {
    show(main, kind === "ready");
    show(filters, kind === "ready");
    if (kind === "error") show(headline, false);
    show(waiting, kind === "loading" || kind === "error");
    if (kind === "error")
      fill(
        waiting,
        h(
          "div",
          { class: "message" },
          h("strong", {}, "Could not open the scan"),
          h("p", {}, text),
          button("Show the first scan", onback, { class: "tool" }),
        ),
      );
    exporter.disabled = findings.disabled = diagnosis.disabled = kind !== "ready";
  }

  function theme(now) {
    const next = now === "dark" ? "light" : "dark";
    themer.textContent = now === "dark" ? "☀" : "☾";
    themer.setAttribute("aria-label", `Switch to the ${next} theme`);
    themer.title = `Switch to the ${next} theme  d`;
  }

  /** The connection: a banner while it is away. */
  function connection(lost) {
    show(banner, lost);
    if (lost)
      fill(
        banner,
        "Connection lost. Reconnecting … If orbical was stopped, restart it with ",
        h("code", {}, "orbical view"),
        ".",
      );
  }

  state("loading");
  return {
    page,
    bar,
    menus,
    preview,
    filters,
    overview,
    detail,
    strip,
    exporter,
    findings,
    diagnosis,
    state,
    theme,
    connection,
    name: (text) => (name.textContent = name.title = text),
    headline: (text) => (show(headline, Boolean(text)), write(said, text ?? "")),
    /** What a report is about: lines of titles and words. */
    cover: (lines = []) => (show(cover, lines.length > 0), fill(cover, coverLines(lines))),
    announce: (text) => (spoken.textContent = text),
    destroy: () => (page.remove(), spoken.remove()),
  };
}

/** The lines of a cover. */
export function coverLines(lines) {
  return lines.map(([title, words]) => h("div", {}, h("dt", {}, title), h("dd", {}, words)));
}

/** The sign of the house: an orbit with a point on it. */
function mark() {
  const ring = node("circle", { r: 7.5, cx: 10, cy: 10, class: "ring" });
  const planet = node("circle", { r: 3, cx: 15.3, cy: 4.7, class: "planet" });
  return node("svg", { viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true" }, ring, planet);
}
