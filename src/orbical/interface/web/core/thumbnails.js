// Small pictures of samples for hover and list: asked in batches, one batch at a time, kept.

import { paintPixels } from "../draw/canvas.js";

const BATCH = 64;
const KEPT = 2000;

/** Keep thumbnails, labels and orbit values per sample; `want` asks for those not yet here. */
export function createThumbnails(app) {
  const known = new Map();
  const listeners = new Set();
  let wanted = [];
  let asked = null;
  let stale = false;

  function ask() {
    if (asked || !wanted.length) return;
    asked = wanted.slice(0, BATCH);
    wanted = wanted.slice(BATCH);
    app.request("hover", { samples: asked });
  }

  /** Ask for samples; those asked last come first. */
  function want(samples) {
    const fresh = samples.filter((sample) => !known.has(sample) && !asked?.includes(sample));
    wanted = [...fresh, ...wanted.filter((sample) => !fresh.includes(sample))].slice(0, 4 * BATCH);
    ask();
  }

  function receive(answer) {
    const samples = asked ?? [];
    asked = null;
    if (!answer.error && !stale) samples.forEach((sample, i) => known.set(sample, one(answer, i)));
    stale = false;
    if (known.size > KEPT) known.delete(known.keys().next().value);
    for (const listener of listeners) listener();
    ask();
  }

  const stopAnswers = app.on("hover", receive);
  const stopFields = app.store.subscribe(["metric", "reference", "models"], () => {
    known.clear();
    wanted = [];
    stale = asked !== null; // its answer belongs to the fields of before
  });
  return {
    want,
    get: (sample) => known.get(sample),
    on: (listener) => (listeners.add(listener), () => listeners.delete(listener)),
    destroy: () => (stopAnswers(), stopFields()),
  };
}

function one(answer, i) {
  const { values, thumbnail, label } = answer.arrays;
  const found = {
    label: label ? label.data[i] : null,
    range: answer.range,
    name: answer.names?.[i] ?? "",
    facts: answer.facts?.[i] ?? {},
  };
  if (values) {
    const [, models, elements] = values.shape;
    const length = models * elements;
    found.values = values.data.slice(i * length, (i + 1) * length);
    found.shape = [models, elements];
  }
  if (thumbnail) {
    const [, height, width, channels] = thumbnail.shape;
    const length = height * width * channels;
    found.picture = { height, width, channels, data: thumbnail.data.slice(i * length, (i + 1) * length) };
  }
  return found;
}

/** Paint u1 pixels [height, width, channels] on a canvas. */
export function paint(canvas, { height, width, channels, data }) {
  // The list shows 34 pixels: of larger pictures the nearest pixel would drop thin lines.
  canvas.style.imageRendering = Math.max(width, height) > 34 ? "auto" : "pixelated";
  paintPixels(canvas, width, height, (rgba) => {
    for (let i = 0; i < width * height; i += 1) {
      for (let c = 0; c < 3; c += 1) rgba[4 * i + c] = data[i * channels + Math.min(c, channels - 1)];
      rgba[4 * i + 3] = 255;
    }
  });
}

const KEPT_SCENES = 16; // those of the pinned samples, and of some that were selected
const SCENE = "input/whole";

/** Keep the scenes of the last samples. */
export function createSceneCache() {
  const known = new Map();

  /** The arrays of a place with its scene: what came with it, else what came before. */
  function complete({ sample, arrays }) {
    const given = arrays[SCENE] ?? known.get(sample);
    if (!given) return arrays;
    known.delete(sample);
    known.set(sample, given);
    if (known.size > KEPT_SCENES) known.delete(known.keys().next().value);
    return { ...arrays, [SCENE]: given };
  }

  return { complete, has: (sample) => known.has(sample) };
}
