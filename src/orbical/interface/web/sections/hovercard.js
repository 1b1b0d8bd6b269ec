// What the pointer is over in the embedding: the picture of the sample and its small orbit plot.

import { fill, h, write } from "../core/dom.js";
import { className, fact } from "../core/text.js";
import { paint } from "../core/thumbnails.js";
import { createGlyph } from "../plots/glyph.js";

const GAP = 14;
const MOST_FACTS = 4;

/** A card that follows the hovered point inside `holder`. */
export function createHoverCard(holder, app) {
  const canvas = h("canvas", { class: "thumb large", width: 1, height: 1 });
  const glyph = createGlyph(app.group, 56);
  const words = h("p", {});
  const more = h("p", { class: "facts" });
  const el = h(
    "div",
    { class: "hovercard", hidden: true, "aria-hidden": "true" },
    h("div", { class: "hovercard-pictures" }, canvas, glyph.element),
    words,
    more,
  );
  holder.append(el);
  let point = null;

  function draw() {
    if (!point) return;
    const found = app.thumbnails.get(point.sample);
    write(
      words,
      [
        `#${app.number(point.sample)}`,
        app.called(point.sample) || found?.name,
        found && found.label !== null && app.state.classes.length ? `label ${className(app.state, found.label)}` : "",
      ]
        .filter(Boolean)
        .join(" · "),
    );
    const facts = Object.entries(found?.facts ?? {}).slice(0, MOST_FACTS);
    write(more, facts.map(([title, value]) => `${title} ${fact(value)}`).join(" · "));
    canvas.hidden = !found?.picture;
    glyph.element.classList.toggle("away", !found?.values);
    if (found?.picture) paint(canvas, found.picture);
    if (found?.values) {
      const metric = app.sampleMetric();
      glyph.set({
        models: app.shown(),
        values: found.values,
        range: [metric.low, metric.high],
        higherIsBetter: metric.higher_is_better,
      });
    }
    place();
  }

  function place() {
    const box = holder.getBoundingClientRect();
    const right = point.x + GAP + el.offsetWidth > box.width;
    const top = Math.min(Math.max(0, point.y - el.offsetHeight / 2), Math.max(0, box.height - el.offsetHeight));
    el.style.left = `${right ? Math.max(0, point.x - GAP - el.offsetWidth) : point.x + GAP}px`;
    el.style.top = `${top}px`;
  }

  /** Show the card for `{sample, x, y}` (pixels in the holder), or hide it for null. */
  function set(next) {
    point = next;
    el.hidden = !next;
    if (!next) return;
    app.thumbnails.want([next.sample]);
    draw();
  }

  const stop = app.thumbnails.on(draw);
  return { set, destroy: () => (stop(), fill(el)) };
}
