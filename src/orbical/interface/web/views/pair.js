// Two frames [2, channels, height, width] that blink at one place, so that the eye sees what moves.

import { h, write } from "../core/dom.js";
import { paintPixels } from "../draw/canvas.js";
import { pixels, valueRange } from "./image.js";
import { createModes } from "./tile.js";

/** @import { ViewContent } from "./index.js" */

const BLINK_MS = 500;
const FIRST = [255, 140, 0]; // an orange and a blue that add up to white where both frames agree
const SECOND = [0, 115, 255];

/** One frame of a pair as a plain image. */
export function frameOf({ data, shape }, which) {
  const size = data.length / 2;
  return { data: data.subarray(which * size, (which + 1) * size), shape: shape.slice(-3) };
}

/** Both frames in one picture, the first orange and the second blue, as RGBA. */
export function overlay(pair, [low, high], out) {
  const [channels, height, width] = pair.shape.slice(-3);
  const plane = height * width;
  const factor = 1 / (high - low) / channels;
  const light = (which, i) => {
    let sum = 0;
    for (let c = 0; c < channels; c += 1) sum += pair.data[(which * channels + c) * plane + i] - low;
    return Math.min(Math.max(sum * factor, 0), 1);
  };
  for (let i = 0; i < plane; i += 1) {
    const [before, after] = [light(0, i), light(1, i)];
    for (let c = 0; c < 3; c += 1) out[4 * i + c] = Math.min(255, before * FIRST[c] + after * SECOND[c]);
    out[4 * i + 3] = 255;
  }
}

/** The view: it blinks until it is paused; where less motion is asked for it starts as an overlay. */
export function createView(el) {
  const canvas = h("canvas", { class: "pixels", role: "img", "aria-label": "pair of images" });
  const still = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
  const modes = [
    ["blink", "Blink", "Alternate between the two frames"],
    ["first", "1", "Show the first frame"],
    ["second", "2", "Show the second frame"],
    ["both", "1+2", "Show the first frame in orange and the second in blue"],
  ];
  const note = h("p", { class: "view-note" });
  const bar = createModes("Frame display", modes, choose);
  bar.el.classList.add("pair-modes");
  el.append(h("div", { class: "pixels-holder" }, canvas), bar.el, note);

  let mode = still ? "both" : "blink";
  let shown = 0;
  let given = null;
  let timer = null;

  function choose(wanted) {
    mode = wanted;
    shown = mode === "second" ? 1 : 0;
    bar.set(mode);
    clearInterval(timer);
    timer = mode === "blink" ? setInterval(blink, BLINK_MS) : null;
    draw();
  }

  function blink() {
    shown = 1 - shown;
    draw();
  }

  function draw() {
    if (!given) return;
    const { pair, range, name } = given;
    const [height, width] = pair.shape.slice(-2);
    paintPixels(canvas, width, height, (rgba) =>
      mode === "both" ? overlay(pair, range, rgba) : pixels(frameOf(pair, shown), range, rgba),
    );
    const words = {
      blink: "alternating frames",
      first: "first frame",
      second: "second frame",
      both: "first frame orange, second blue",
    };
    canvas.setAttribute("aria-label", `input at ${name}: ${words[mode]}, ${width} by ${height} pixels`);
    write(
      note,
      mode === "both" ? "orange: first frame · blue: second frame" : mode === "blink" ? "" : `frame ${shown + 1} of 2`,
    );
  }

  function set(/** @type {ViewContent} */ { fields, place }) {
    const pair = Object.values(fields).find((field) => field.shape.length >= 4);
    if (!pair) return;
    given = { pair, range: valueRange(pair), name: place.name };
    draw();
  }

  choose(mode);
  return {
    set,
    destroy() {
      clearInterval(timer);
      el.replaceChildren();
    },
  };
}
