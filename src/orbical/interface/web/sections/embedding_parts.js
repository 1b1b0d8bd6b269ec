// Round regions of the embedding: what the keyboard draws instead of a lasso.
import { fill, h, write } from "../core/dom.js";
import { className, fact, whole } from "../core/text.js";
import { paint } from "../core/thumbnails.js";
import { fit, resolve } from "../draw/canvas.js";
import { badToGood, classColor, CLASSES, classPlaces, colorOf } from "../draw/colors.js";
import { ends } from "../draw/format.js";
import { orbitOf } from "../draw/orbits.js";
import { onlyRounding } from "../draw/scales.js";
import { createGlyph, drawGlyph } from "../plots/glyph.js";

const CORNERS = 24;

/** A circle around a point, as a polygon. */
export function circleAround([x, y], radius) {
  return Array.from({ length: CORNERS }, (_, i) => {
    const angle = (2 * Math.PI * i) / CORNERS;
    return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
  });
}

/** A polygon made wider or narrower about a center. */
export function scaledAbout(polygon, [x, y], factor) {
  return polygon.map(([px, py]) => [x + factor * (px - x), y + factor * (py - y)]);
}

const [PAD, ROUND, CORNER] = [3, 5, 0.34];

/** Make the pictures of a page: `want(samples)`, `of(sample, size)`, and `on(listener)` for when more are there. */
export function createMapGlyphs(app, el) {
  const orbit = orbitOf(app.group);
  const drawn = new Map();
  const listeners = new Set();
  const forget = () => (drawn.clear(), listeners.forEach((listener) => listener()));

  function card(size, found) {
    const canvas = h("canvas", {});
    const context = fit(canvas, size, size);
    context.beginPath();
    context.roundRect(0.5, 0.5, size - 1, size - 1, ROUND);
    context.globalAlpha = 0.85;
    context.fillStyle = resolve(el, "var(--panel, #ffffff)");
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = 1;
    context.strokeStyle = resolve(el, "var(--faint, #c9cfd6)");
    context.stroke();
    context.save();
    context.translate(PAD, PAD);
    const range = found.range?.every(Number.isFinite) ? found.range : null;
    const { higher_is_better: higherIsBetter } = app.sampleMetric();
    const given = { models: app.shown(), values: found.values, range, higherIsBetter, element: el };
    drawGlyph(context, orbit, size - 2 * PAD, given);
    context.restore();
    if (found.picture) corner(context, size * CORNER, found.picture);
    return canvas;
  }

  /** The input, small, in the upper left corner. */
  function corner(context, side, picture) {
    const small = h("canvas", {});
    paint(small, picture);
    const scale = side / Math.max(picture.width, picture.height);
    context.imageSmoothingEnabled = scale < 1;
    context.drawImage(small, 2, 2, picture.width * scale, picture.height * scale);
  }

  const stops = [
    app.thumbnails.on(() => listeners.forEach((listener) => listener())),
    app.store.subscribe(["metric", "reference", "models"], forget),
    app.theme.on(forget),
  ];
  return {
    want: (samples) => app.thumbnails.want(samples),
    of(sample, size) {
      const found = app.thumbnails.get(sample);
      const key = `${sample}@${size}`;
      if (!found?.values) return drawn.get(key) ?? (app.thumbnails.want([sample]), null);
      if (!drawn.has(key)) drawn.set(key, card(size, found));
      return drawn.get(key);
    },
    on: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    destroy: () => stops.forEach((stop) => stop()),
  };
}

const STOPS = 24;

const NARROW = 1 / 3;

/**
 * A diverging scale reaches as far on both sides as its values do on one. Values that fill little of
 * a sequential one would all look alike: it is drawn over them alone.
 */
export function withColorRange(answer, classes = [], rounding = 0) {
  if (answer.scale === "classes") {
    const names = answer.names ?? classes;
    return { ...answer, names, colors: classPlaces(answer.arrays.values.data, names.length) };
  }
  if (answer.higher_is_better === false && onlyRounding(answer.arrays.values.data, rounding))
    return { ...answer, range: [0, rounding] };
  if (answer.scale === "sequential") return { ...answer, range: narrowed(answer) };
  if (answer.scale !== "diverging") return answer;
  const far = answer.arrays.values.data.reduce(
    (most, value) => (Math.abs(value) > most ? Math.abs(value) : most),
    0.01,
  );
  const round = Math.ceil(far * 20) / 20;
  return { ...answer, range: [-round, round] };
}

function narrowed({ range, arrays }) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of arrays.values.data) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const spread = high - low;
  return spread > 0 && spread < NARROW * (range[1] - range[0]) ? [low, high] : range;
}

/** Make the key; `set(colorAnswer, dark)`. */
export function createColorKey() {
  const el = h("div", { class: "key" });

  function set({ scale, range, title, names, colors, unit, higher_is_better: upward }, dark) {
    const mark = ["°", "px"].includes(unit) ? unit : "";
    const name = h("span", { class: "key-title", title }, title ?? "");
    if (scale === "classes") {
      const chips = colors.shown.map((c) => chip(classColor(colors.place(c), dark), names[c] ?? c));
      const rest = colors.rest ? chip(classColor(CLASSES.length - 1, dark), `${whole(colors.rest)} others`) : null;
      fill(el, chips, rest, name);
    } else {
      const [low, high] = ends(range).map((value) => h("span", {}, value + mark));
      fill(el, low, strip(scale, range, badToGood(range, upward), dark), high, name);
    }
  }

  return { el, set };
}

function chip(color, text) {
  const dot = h("i", { class: "dot" });
  dot.style.background = color;
  return h("span", { class: "chip-class" }, dot, String(text));
}

function strip(kind, [low, high], shades, dark) {
  const el = h("span", { class: "strip", "aria-hidden": "true" });
  const at = (i) => colorOf(low + ((high - low) * i) / (STOPS - 1), shades, dark, kind);
  el.style.background = `linear-gradient(to right, ${Array.from({ length: STOPS }, (_, i) => at(i)).join()})`;
  return el;
}

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
