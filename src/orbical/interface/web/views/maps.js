// Maps of all pixels side by side: the truth, each model's answer, where it differs, and how sure it is.

import { button, fill, h, show as display, write } from "../core/dom.js";
import { paintPixels } from "../draw/canvas.js";
import { badToGood, classColor, colorOf, colorize, MISSING } from "../draw/colors.js";
import { fixed, keep } from "../draw/format.js";
import { colorRange } from "../draw/scales.js";
import { pixels, valueRange } from "./image.js";
import { chip, createBoard, sideOf } from "./tile.js";

/** @import { Field, ViewContent } from "./index.js" */

const MOST_CLASSES = 28;
const SHARE = [0, 1];
const LESS_IS_BETTER = badToGood(SHARE, false);

const short = (value) => String(Number(value.toPrecision(2)));

/** One map [rows, columns] out of [models, rows, columns]; what is the same for all is held once. */
export function mapOf(/** @type {Field} */ { data, shape }, model) {
  const [rows, columns] = shape.slice(-2);
  const size = rows * columns;
  const start = data.length > size ? model * size : 0;
  return { data: data.subarray(start, start + size), rows, columns };
}

/** Classes of which a negative one is not seen. */
export function classes(map) {
  return { ...map, data: Float32Array.from(map.data, (value) => (Math.round(value) < 0 ? NaN : Math.round(value))) };
}

/** A map on the grid of another, by the middle of its cells. */
function onGridOf({ rows, columns }, other) {
  const data = new Float32Array(rows * columns);
  for (let i = 0; i < data.length; i += 1) {
    const row = Math.floor(((Math.floor(i / columns) + 0.5) * other.rows) / rows);
    const column = Math.floor((((i % columns) + 0.5) * other.columns) / columns);
    data[i] = other.data[row * other.columns + column];
  }
  return data;
}

/** A map without what another one, if given, does not know: it lies outside the image. */
function within(map, seen) {
  if (!seen) return map;
  const known = onGridOf(map, seen);
  return { ...map, data: map.data.map((value, i) => (Number.isFinite(known[i]) ? value : NaN)) };
}

/** Lay the colors of a map, RGBA, over the pixels of an image; where it has no value, the image is seen. */
export function laidOver(rgba, width, map, colors, opacity) {
  const height = rgba.length / 4 / width;
  for (let i = 0; i < rgba.length / 4; i += 1) {
    const row = Math.floor(((Math.floor(i / width) + 0.5) * map.rows) / height);
    const cell = row * map.columns + Math.floor((((i % width) + 0.5) * map.columns) / width);
    const share = Number.isFinite(map.data[cell]) ? opacity : 0;
    for (let c = 0; c < 3; c += 1) rgba[4 * i + c] += share * (colors[4 * cell + c] - rgba[4 * i + c]);
  }
}

/** Where the classes of two maps differ: 1, 0, or NaN where one is unknown or a third map, if given, is. */
export function difference(answer, other, seen = answer) {
  const [there, known] = [onGridOf(answer, other), onGridOf(answer, seen)];
  const apart = (value, i) => ([value, there[i], known[i]].every(Number.isFinite) ? Number(value !== there[i]) : NaN);
  return { ...answer, data: answer.data.map(apart) };
}

/** The panels of class maps: the truth once, and for each model its classes, differences and entropy. */
export function classPanels(/** @type {ViewContent} */ content) {
  const { fields, truths = {}, consensus = {}, models, colors, byConsensus, byBoth } = content;
  const whole = fields.segments;
  const entropies = fields.entropy_map; // unknown outside the image
  const known = truths.moved ?? fields.truth_map;
  const truth = known && within(classes(mapOf(known, 0)), entropies && mapOf(entropies, 0));
  const rows = models.map((name, m) => {
    const entropy = entropies && mapOf(entropies, m);
    const answer = within(classes(mapOf(whole ?? fields.class_map, m)), entropy);
    /** @type {any[]} */
    const panels = [{ title: name, color: colors[m], map: answer, kind: "classes", range: SHARE }];
    const stored = fields.map_vs_consensus && mapOf(fields.map_vs_consensus, m);
    const agreed = consensus.moved?.shape.length === 3 ? classes(mapOf(consensus.moved, m)) : null;
    const push = (title, about, map) => panels.push({ title, about, map, kind: "sequential", range: LESS_IS_BETTER });
    const wrong = truth && !byConsensus ? difference(answer, truth, entropy) : null;
    if (wrong) push("error", "differs from the truth", wrong);
    const differs = agreed ? difference(answer, agreed, entropy) : stored;
    if (differs && (!wrong || byBoth)) push("differs", "differs from the consensus", differs);
    if (entropy) push("entropy", "entropy", entropy);
    return panels;
  });
  const first = truth ? [{ title: "truth", map: truth, kind: "classes", range: SHARE }] : [];
  return { first, rows };
}

/** The panels of maps of values: the truth once, and for each model its values, error and uncertainty. */
export function valuePanels(/** @type {ViewContent} */ { fields, models, colors, byConsensus, byBoth }) {
  const values = models.map((_, m) => mapOf(fields.value_map, m));
  const truth = fields.truth_map ? [mapOf(fields.truth_map, 0)] : [];
  // Live answers have no distance from the consensus, and an error against the truth is not it.
  const apart = byConsensus ? fields.map_vs_consensus : (fields.error_map ?? fields.map_vs_consensus);
  const rows = models.map((name, m) => {
    /** @type {any[]} */
    const panels = [{ title: name, color: colors[m], map: values[m], kind: "sequential", scale: "value" }];
    const about = apart === fields.error_map ? "error" : "distance from the consensus";
    if (apart) panels.push({ title: "error", about, map: mapOf(apart, m), kind: "sequential", scale: "error" });
    if (byBoth && fields.map_vs_consensus && apart !== fields.map_vs_consensus) {
      const map = mapOf(fields.map_vs_consensus, m);
      panels.push({
        title: "vs. consensus",
        about: "distance from the consensus",
        map,
        kind: "sequential",
        scale: "error",
      });
    }
    if (fields.std_map) {
      const about = "predicted standard deviation";
      panels.push({ title: "std", about, map: mapOf(fields.std_map, m), kind: "sequential", scale: "error" });
    }
    return panels;
  });
  return { first: truth.map((map) => ({ title: "truth", map, kind: "sequential", scale: "value" })), rows };
}

/** One range of each scale for the whole orbit of a sample: colors must not jump as it moves. */
export function steadyRanges(known, panels) {
  /** @type {Record<string, number[]>} */
  const ranges = { ...known };
  for (const scale of new Set(panels.map((panel) => panel.scale))) {
    const rows = panels.filter((panel) => panel.scale === scale).map(({ map }) => map.data);
    const [low, high] = colorRange(rows);
    const [least, most] = ranges[scale] ?? [Infinity, -Infinity];
    ranges[scale] = [scale === "error" ? 0 : Math.min(low, least), Math.max(high, most)];
  }
  return ranges;
}

/** The truth before the first row or above it, whichever leaves more room; gaps are null. */
export function tableOf({ first, rows }, width, height, aspect = 1) {
  const gaps = (count) => Array.from({ length: count }, () => null);
  const most = Math.max(...rows.map((panels) => panels.length));
  const padded = rows.map((panels) => [...panels, ...gaps(most - panels.length)]);
  const before = padded.map((panels, m) => [...(m ? gaps(first.length) : first), ...panels]);
  const above = [[...first, ...gaps(most - first.length)], ...padded];
  const side = (table) => sideOf(table[0].length, table.length, width, height, aspect);
  return first.length && side(above) > side(before) ? above : before;
}

/** Why maps of a volume are not at the slices of its input; empty where they are. */
export function elsewhere(/** @type {ViewContent} */ { slices = [], about, fields }, state = {}) {
  if (!slices.length || !about?.slices || slices.join() === about.slices.join()) return "";
  const kept = fields.value_map ? "predicted_maps" : "probabilities";
  return `Only the middle slices are stored. To see others, pass the models or scan with ${keep(state, kept)}.`;
}

/** That maps are coarser than the image they are of; empty where they are not. */
export function coarser(/** @type {ViewContent} */ { fields, inputs = {} }, state = {}) {
  const map = fields.segments ? null : (fields.class_map ?? fields.value_map);
  if (!map || !inputs.image) return "";
  const [[rows, columns], [height, width]] = [map, inputs.image].map(({ shape }) => shape.slice(-2));
  if (rows * columns >= height * width) return "";
  const shown = `Shown at ${rows} × ${columns} of ${height} × ${width} pixels.`;
  if (fields.value_map) return shown; // of models, too
  return `${shown} To see all, pass the models or scan with ${keep(state, "segments")}.`;
}

/** What is said of each model: the scores that the scan has. */
export function spoken(/** @type {ViewContent} */ { fields, models, byConsensus, byBoth }, { truth, consensus }) {
  const own = [["score_vs_consensus", consensus]];
  const shown = byConsensus ? own : [...truth, ...(byBoth ? own : [])];
  return models.map((name, m) => {
    const words = shown
      .filter(([field]) => Number.isFinite(fields[field]?.data[m]))
      .map(([field, title]) => `${title} ${fixed(fields[field].data[m], 3)}`);
    return `${name}: ${words.join(", ")}`;
  });
}

const SCORES = {
  classes: {
    truth: [
      ["score", "pixel accuracy"],
      ["mean_iou", "mean IoU"],
    ],
    consensus: "agreement with the consensus",
  },
  values: {
    truth: [
      ["score", "error"],
      ["rmse", "RMSE"],
    ],
    consensus: "distance from the consensus",
  },
};

/** The view. A click on a map shows it alone, another click shows all again. */
export function createView(el, state) {
  const board = createBoard(el, "maps", draw, show);
  const key = h("p", { class: "view-note key", tabindex: "0" });
  const note = h("p", { class: "slice-note", role: "status" });
  const slider = h("input", { type: "range", min: 0, max: 1, step: 0.05, value: 1, oninput: draw });
  const overlay = h("label", { class: "overlay", title: "Lay the maps over the image" }, "image", slider, "map");
  el.append(h("div", { class: "below" }, key, overlay), note);
  let given = null;
  const off = new Set(); // classes that are not drawn
  /** @type {{ sample: number | null, ranges: Record<string, number[]> }} */
  let kept = { sample: null, ranges: {} };

  function draw() {
    if (!given) return;
    const kind = given.fields.value_map ? "values" : "classes";
    if (kind === "classes" && !given.fields.class_map) return write(key, "No maps stored at this position.");
    const panels = kind === "values" ? valuePanels(given) : classPanels(given);
    if (kind === "values") {
      const { sample } = given.place;
      kept = {
        sample,
        ranges: steadyRanges(kept.sample === sample ? kept.ranges : {}, [panels.first, panels.rows].flat(2)),
      };
    }
    const { map } = panels.rows[0][0];
    const aspect = Math.min(1, map.rows / map.columns);
    const table = tableOf(panels, ...board.room(), aspect);
    const all = table.flat();
    board.show(all, table[0].length, aspect);
    board.el.setAttribute("aria-label", spoken(given, SCORES[kind]).join("; "));
    if (kind === "values") return rangesLegend();
    legend(all.filter((panel) => panel?.kind === "classes").map((panel) => panel.map));
  }

  function show(panel, { canvas, side }) {
    canvas.classList.add("pixels");
    Object.assign(canvas.style, { width: `${side}px`, maxHeight: `${side}px` });
    canvas.setAttribute("aria-label", `map: ${panel.about ?? panel.title}`);
    paint(canvas, panel);
  }

  /** The range of a scale, from bad to good where it has such ends. */
  function shades(scale) {
    return badToGood(kept.ranges[scale], scale === "error" ? false : undefined);
  }

  function paint(canvas, { map: whole, kind, scale, range = shades(scale) }) {
    const hidden = kind === "classes" && off.size > 0;
    const map = hidden ? { ...whole, data: whole.data.map((c) => (off.has(c) ? NaN : c)) } : whole;
    const colors = colorize(map.data, { kind, range }, board.dark());
    const [image, opacity] = [given.inputs?.image, Number(slider.value)];
    if (!image || opacity === 1) return paintPixels(canvas, map.columns, map.rows, (rgba) => rgba.set(colors));
    const [height, width] = image.shape.slice(-2);
    return paintPixels(canvas, width, height, (rgba) => {
      pixels(image, valueRange(image), rgba);
      laidOver(rgba, width, map, colors, opacity);
    });
  }

  /** The classes that are drawn, each a switch, and the colors of shares. */
  function legend(maps) {
    const all = [...new Set(maps.flatMap(({ data }) => Array.from(new Set(data))))];
    const seen = all.filter(Number.isFinite).sort((a, b) => a - b);
    const names = state.task?.classes ?? [];
    const focused = key.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
    const named = (c) => {
      const label = chip(classColor(c, board.dark()), String(names[c] ?? `class ${c}`));
      const about = {
        class: "class-switch",
        "aria-pressed": String(!off.has(c)),
        "data-key": c,
        title: "Show or hide",
      };
      return button(label, () => (off.delete(c) || off.add(c), draw()), about);
    };
    fill(key, [
      ...seen.slice(0, MOST_CLASSES).map(named),
      all.length > seen.length ? chip(MISSING[board.dark() ? "dark" : "light"], "not judged") : null,
      ...["agrees, certain", "differs, uncertain"].map((words, share) =>
        chip(colorOf(share, LESS_IS_BETTER, board.dark()), words),
      ),
    ]);
    const again = focused !== null && key.querySelector(`[data-key="${focused}"]`);
    if (again instanceof HTMLElement) again.focus();
  }

  /** From what to what the colors of values and errors go. */
  function rangesLegend() {
    fill(
      key,
      Object.entries(kept.ranges).map(([name, [low, high]]) =>
        chip(
          gradient(badToGood(SHARE, name === "error" ? false : undefined)),
          `${name} ${short(low)} to ${short(high)}`,
        ),
      ),
    );
  }

  function gradient(range) {
    const colors = [0, 0.25, 0.5, 0.75, 1].map((value) => colorOf(value, range, board.dark()));
    return `linear-gradient(to right, ${colors.join(",")})`;
  }

  function set(/** @type {ViewContent} */ content) {
    given = content;
    display(overlay, (content.inputs?.image?.shape.length ?? 0) >= 2);
    write(note, elsewhere(content, state) || coarser(content, state));
    draw();
  }

  return { set, destroy: board.destroy };
}
