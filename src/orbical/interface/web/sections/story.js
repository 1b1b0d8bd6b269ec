// The story on paper: each finding on a page of its own, with the picture of what it shows; or in words.
import { button, h, show, write } from "../core/dom.js";
import { svgBlob } from "../core/downloads.js";
import { pageSvg } from "../core/page_svg.js";
import { toFragment } from "../core/selection.js";
import { coverLines } from "./shell.js";

const CALM_FRAMES = 3;
const MOST_MS = 20000;

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** Wait until everything that was asked is answered and drawn. */
async function settled(busy) {
  const end = performance.now() + MOST_MS;
  for (let calm = 0; calm < CALM_FRAMES && performance.now() < end; calm = busy() ? 0 : calm + 1) await frame();
}

/** The page, or what is enlarged there, as an image, so that its names cannot clash with those of another. */
async function picture(app) {
  app.sections.embedding.repaint();
  const shown = app.root.querySelector(".staged") ?? app.root.querySelector(".main");
  const image = new Image();
  image.alt = "";
  image.src = URL.createObjectURL(svgBlob(pageSvg(shown)));
  await image.decode();
  return image;
}

/** The page as paper shows it, light and without controls, as long as `draw` takes. */
async function asOnPaper({ root, theme }, draw) {
  theme.show("light");
  root.classList.add("on-paper");
  try {
    await draw();
  } finally {
    root.classList.remove("on-paper");
    theme.show();
  }
}

/** The first page: what was found, in which models and data, when and with what. */
function coverPage({ title }, text, lines) {
  return h(
    "article",
    { class: "cover-page" },
    h("h1", {}, title),
    h("p", {}, text),
    h("dl", { class: "cover" }, coverLines(lines)),
  );
}

/** Print all findings; `visit(place)` shows one of them. Afterwards the page is as it was. */
export async function printStory(app, visit) {
  const before = app.store.get();
  const { cover, headline } = app.state.report ?? {};
  const first = cover ? coverPage(app.state, headline.text, cover) : null;
  const pages = h("div", { class: "story-print" }, first);
  await asOnPaper(app, async () => {
    for (const [place, { title, note }] of app.findings.list().entries()) {
      visit(place);
      await settled(app.busy);
      pages.append(h("article", {}, h("h1", {}, title), h("p", {}, note), await picture(app)));
    }
  });
  app.store.set(before, { from: "link" });
  app.root.append(pages);
  app.root.classList.add("printing");
  const done = () => {
    app.root.classList.remove("printing");
    pages.querySelectorAll("img").forEach((image) => URL.revokeObjectURL(image.src));
    pages.remove();
  };
  addEventListener("afterprint", done, { once: true });
  print();
}

/**
 * The story in words, for the menu of the browser: it prints at once and cannot wait for pictures.
 * The page below `shows` one of the findings, or none.
 */
export function storyInWords(findings, shows) {
  const articles = findings.map((finding, place) =>
    h(
      "article",
      {},
      h("h2", {}, `${place + 1}. ${finding.title}`),
      h("p", {}, finding.note),
      shows(finding) ? h("p", { class: "step" }, "shown below") : null,
    ),
  );
  return h("div", { class: "story-words" }, articles);
}

/** The bar of the story; `go(place)` shows a finding, `close` ends it. */
export function createStory(el, app) {
  const { findings, store } = app;
  const listeners = new Set();
  let current = "";

  const step = h("p", { class: "step" });
  const title = h("h2", {});
  const note = h("p", { class: "text", tabindex: "0", role: "note" });
  const before = button("‹ Previous", () => go(at() - 1), { class: "tool" });
  const after = button("Next ›", () => go(at() + 1), { class: "tool primary" });
  const back = button("Back to the finding", () => go(at()), { class: "link" });
  const paper = button("Print", print, { class: "tool", title: "Print all findings, one to a page" });
  const end = button("✕", close, { class: "tool icon", "aria-label": "Close the story", title: "Close the story" });
  const words = h("div", { class: "words" }, step, h("div", { class: "line" }, title, back), note);
  const bar = h("section", { class: "story", "aria-label": "Story", hidden: true }, words);
  bar.append(h("div", { class: "buttons" }, before, after, paper, end));
  el.append(bar);

  const at = () => findings.list().findIndex(({ id }) => id === current);

  function go(place, from = "user") {
    const finding = findings.list()[place];
    if (!finding) return false;
    current = finding.id;
    store.set(findings.selection(finding), { from });
    draw();
    app.announce(`${step.textContent}: ${finding.title}. ${finding.note}`);
    return undefined;
  }

  async function print() {
    const here = current;
    paper.disabled = true;
    await printStory(app, (place) => go(place, "link"));
    paper.disabled = false;
    current = here;
    draw();
  }

  const told = () => app.state.report && findings.list().length > 0;

  /** In a report with a story, printing prints the story. */
  function onkeydown(event) {
    if (event.key !== "p" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    if (!told()) return;
    event.preventDefault();
    print();
  }

  function onbeforeprint() {
    if (!told() || app.root.classList.contains("printing")) return;
    const pages = storyInWords(findings.list(), shows);
    app.root.prepend(pages);
    addEventListener("afterprint", () => pages.remove(), { once: true });
  }

  const shows = (finding) => toFragment(findings.selection(finding)) === toFragment(store.get());

  /** Begin as the address says: at the finding that it shows, at the first if it says nothing. */
  function begin(fresh) {
    if (fresh) return go(0, "state");
    current = findings.list().find(shows)?.id ?? "";
    return draw();
  }

  function close() {
    current = "";
    draw();
  }

  /** Where one section fills the window, the bar lies over its lower edge. */
  function float(on) {
    if (on === bar.classList.contains("floating")) return;
    bar.classList.toggle("floating", on);
    if (on) {
      app.root.append(bar); // what lies beside the stage is inert
      bar.popover = "manual";
      bar.showPopover();
    } else {
      bar.removeAttribute("popover");
      el.append(bar);
    }
  }

  function draw() {
    const [all, place] = [findings.list(), at()];
    show(bar, place >= 0);
    float(place >= 0 && Boolean(store.get().stage));
    if (place >= 0) {
      const finding = all[place];
      write(step, `Finding ${place + 1} of ${all.length}`);
      write(title, finding.title);
      write(note, finding.note);
      show(note, Boolean(finding.note));
      show(back, !shows(finding));
      before.disabled = place === 0;
      after.disabled = place === all.length - 1;
    }
    for (const listener of listeners) listener();
  }

  addEventListener("keydown", onkeydown);
  addEventListener("beforeprint", onbeforeprint);
  const stops = [
    () => removeEventListener("keydown", onkeydown),
    () => removeEventListener("beforeprint", onbeforeprint),
    findings.on(draw),
    store.subscribe(["done"], draw),
  ];
  return {
    begin,
    go,
    step: (by) => (at() < 0 ? go(0) : go(at() + by)),
    focus: () => (after.disabled ? end : after).focus(),
    close,
    at: () => current,
    on: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    destroy: () => (stops.forEach((stop) => stop()), bar.remove()),
  };
}
