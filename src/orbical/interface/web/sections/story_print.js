// The story on paper: each finding on a page of its own, with the picture of what it shows; or in words.

import { h } from "../core/dom.js";
import { svgBlob } from "../core/downloads.js";
import { pageSvg } from "../core/page_svg.js";

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

/** Print all findings; `visit(place)` shows one of them. Afterwards the page is as it was. */
export async function printStory(app, visit) {
  const before = app.store.get();
  const pages = h("div", { class: "story-print" });
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
