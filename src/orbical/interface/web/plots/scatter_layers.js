/** A layer of points: by WebGL2, or by pixels where there is none. */
import { fit } from "../draw/canvas.js";
import { inkOf } from "../draw/colors.js";
import { shortened } from "../draw/format.js";
import { placesOf, spacedOut, toPixels } from "../draw/map_layout.js";
import { FADED, rasterizePoints } from "../draw/point_raster.js";
import { clamp } from "../draw/scales.js";
import { ACCENT, assign, haloed, INK, node, PANEL, polyline, textWidth } from "../draw/svg.js";

const UNIFORMS = ["scale", "offset", "size", "opacity", "faded", "pass"];
const VERTEX = `#version 300 es
in vec2 place; in vec4 color; in float inside;
uniform vec2 scale, offset; uniform float size, opacity, faded; uniform float pass;
out vec4 shade;
void main() {
  bool drawn = pass < 0.0 || abs(inside - pass) < 0.5;
  gl_Position = drawn ? vec4(place * scale + offset, 0.0, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
  gl_PointSize = size;
  float alpha = color.a * opacity * (pass == 0.0 ? faded : 1.0);
  shade = vec4(color.rgb * alpha, alpha);
}`;
const FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade; uniform float size; out vec4 pixel;
void main() {
  float off = length(gl_PointCoord - 0.5) * size;
  float cover = clamp(size * 0.5 - off, 0.0, 1.0);
  if (cover <= 0.0) discard;
  pixel = shade * cover;
}`;

/**
 * Points drawn on a canvas: `{ set(points), draw(view), destroy() }`. `webgl` true takes WebGL2 where a
 * graphics card does it, "any" also where software does, false never.
 * @param {HTMLCanvasElement} canvas
 * @param {boolean | "any"} webgl
 */
export function createPoints(canvas, webgl = true) {
  const wanted = webgl === "any" || (webgl && hasCard());
  const gl = wanted ? canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true, alpha: true }) : null;
  return gl ? glPoints(canvas, gl) : pixelPoints(canvas);
}

let card = null;

/** Whether a graphics card draws: where software would do its work, our own pixels are faster. */
function hasCard() {
  if (card !== null) return card;
  const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  const known = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = gl ? String(gl.getParameter(known ? known.UNMASKED_RENDERER_WEBGL : gl.RENDERER)) : "software";
  card = !/swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return card;
}

function glPoints(canvas, gl) {
  let [program, count, masked, points] = [null, 0, false, null];
  /** @type {Record<string, any>} */
  let at = {};
  function prepare() {
    program = gl.createProgram();
    for (const [kind, source] of [
      [gl.VERTEX_SHADER, VERTEX],
      [gl.FRAGMENT_SHADER, FRAGMENT],
    ]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    at = {};
    for (const name of UNIFORMS) at[name] = gl.getUniformLocation(program, name);
    at.buffers = { place: gl.createBuffer(), color: gl.createBuffer(), inside: gl.createBuffer() };
  }
  function upload(name, data, size, type, normalized) {
    const place = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, at.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, type, normalized, 0, 0);
  }
  function set(given) {
    const same = points ?? { xy: null, colors: null, mask: null };
    points = given;
    count = given.xy.length / 2;
    masked = Boolean(given.mask);
    if (given.xy !== same.xy) upload("place", given.xy, 2, gl.FLOAT, false);
    if (given.colors !== same.colors) upload("color", given.colors, 4, gl.UNSIGNED_BYTE, true);
    if (masked && given.mask !== same.mask) upload("inside", given.mask, 1, gl.UNSIGNED_BYTE, false);
    if (!masked) gl.disableVertexAttribArray(gl.getAttribLocation(program, "inside"));
    else gl.enableVertexAttribArray(gl.getAttribLocation(program, "inside"));
  }
  function draw({ width, height, ratio, scale, offset, radius, opacity }) {
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!count || gl.isContextLost()) return;
    gl.uniform2f(at.scale, (2 * scale[0]) / width, (-2 * scale[1]) / height);
    gl.uniform2f(at.offset, (2 * offset[0]) / width - 1, 1 - (2 * offset[1]) / height);
    gl.uniform1f(at.size, 2 * radius * ratio + 1);
    gl.uniform1f(at.opacity, opacity);
    gl.uniform1f(at.faded, FADED);
    for (const pass of masked ? [0, 1] : [-1]) {
      gl.uniform1f(at.pass, pass);
      gl.drawArrays(gl.POINTS, 0, count);
    }
  }
  function restore() {
    prepare();
    const again = points;
    points = null;
    if (again) set(again);
  }
  prepare();
  return { kind: "webgl2", set, draw, restore, destroy: () => gl.getExtension("WEBGL_lose_context")?.loseContext() };
}

function pixelPoints(canvas) {
  const context = canvas.getContext("2d");
  let points = { xy: new Float32Array(0), colors: new Uint8Array(0), mask: null };
  return {
    kind: "canvas",
    set: (given) => (points = given),
    draw({ ratio, scale, offset, radius, opacity }) {
      const image = context.createImageData(canvas.width, canvas.height);
      const times = (pair) => pair.map((value) => value * ratio);
      const view = { scale: times(scale), offset: times(offset), radius: radius * ratio, opacity };
      rasterizePoints(image.data, canvas.width, canvas.height, { ...points, ...view });
      context.putImageData(image, 0, 0);
    },
    restore() {},
    destroy() {},
  };
}

const REST_MS = 90;
const [LEAST, MOST] = [46, 84];

/** The side of a picture on a plot of some width. */
export function glyphSize(width) {
  return Math.round(clamp(width / 9, LEAST, MOST));
}

/** Make the layer over the points of `frame`; `pictures` has `want(samples)` and `of(sample, size)`, a canvas or null. */
export function createGlyphLayer(frame, pictures) {
  const canvas = document.createElement("canvas");
  canvas.className = "glyph-layer";
  Object.assign(canvas.style, { position: "absolute", left: "0", top: "0", pointerEvents: "none" });
  frame.canvas.after(canvas);
  /** @type {number[]} */
  let chosen = [];
  /** @type {{ sample: number, x: number, y: number, half: number }[]} */
  let places = [];
  /** @type {any} */
  let [timer, chosenFor] = [0, []];

  /** Draw what was chosen where it is now; once the view rests, choose anew. */
  function draw(view, { xy, mask }) {
    const size = glyphSize(view.width);
    if (!chosen.length) choose(view, xy, mask, size);
    paint(view, xy, size);
    clearTimeout(timer);
    timer = setTimeout(() => (choose(view, xy, mask, size), paint(view, xy, size)), REST_MS);
  }

  function choose(view, xy, mask, size) {
    const key = [xy, mask, view.x, view.y, view.zoom, view.width, view.height];
    if (key.every((part, k) => part === chosenFor[k])) return;
    chosenFor = key;
    chosen = spacedOut(xy, mask, view, size + 4);
    pictures.want(chosen);
  }

  function paint(view, xy, size) {
    const context = fit(canvas, view.width, view.height);
    places = placesOf(chosen, xy, view).map((place) => ({ ...place, half: size / 2 }));
    for (const { sample, x, y, half } of places) {
      const picture = pictures.of(sample, size);
      if (picture) context.drawImage(picture, x - half, y - half, size, size);
    }
  }

  return {
    draw,
    /** The sample whose picture is at a place, -1 for none. */
    at: (x, y) =>
      places.find((place) => Math.max(Math.abs(place.x - x), Math.abs(place.y - y)) <= place.half)?.sample ?? -1,
    count: () => places.length,
    destroy: () => (clearTimeout(timer), canvas.remove()),
  };
}

const [SIZE, BOLD, AWAY, LONGEST] = [13, 1.1, 14, 22];

/** A place for words beside a point, inside the plot and off the words that are there; none if all are taken. */
export function freeSpot(/** @type {number[]} */ [px, py], wide, { width, height }, taken) {
  const aside = wide / 2 + AWAY - 4;
  const spots = [
    [0, -AWAY],
    [0, AWAY],
    [aside, 0],
    [-aside, 0],
  ].map(([dx, dy]) => ({ x: px + dx, y: py + dy, wide }));
  const inside = ({ x, y }) => x >= wide / 2 && x <= width - wide / 2 && y >= 8 && y <= height - 8;
  const apart = (one) => (other) =>
    Math.abs(one.x - other.x) > (one.wide + other.wide) / 2 + 2 || Math.abs(one.y - other.y) >= SIZE + 1;
  return spots.find((spot) => inside(spot) && taken.every(apart(spot))) ?? null;
}

/** Make the marks: `elements` to show, and `place(state, xy)` to put them where they belong. */
export function createScatterMarks() {
  const ring = (look) => node("circle", { fill: "none", visibility: "hidden", ...look });
  const hovered = ring({ r: 7, stroke: INK, "stroke-width": 1.5, "data-transient": "" });
  const under = ring({ r: 8, stroke: PANEL, "stroke-width": 5 });
  const selected = ring({ r: 8, stroke: INK, "stroke-width": 2.5 });
  const look = { fill: ACCENT, "fill-opacity": 0.12, stroke: ACCENT, "stroke-width": 1.5, "stroke-dasharray": "5 3" };
  const outline = node("path", look);
  const names = node("g", { "font-weight": 700 });
  return {
    elements: [outline, names, hovered, under, selected],
    /** Write names `{ text, x, y, color }` among the points. */
    name(state, labels, dark) {
      const taken = [];
      names.replaceChildren(
        ...labels.flatMap(({ text, x, y, color }) => {
          const words = shortened(text, LONGEST);
          const spot = freeSpot(toPixels(state.view, x, y), textWidth(words, SIZE) * BOLD, state.view, taken);
          if (!spot) return []; // the key below the map has all names
          taken.push(spot);
          const look = { fill: inkOf(color, dark), "font-size": SIZE, "stroke-width": 4, "font-weight": 700 };
          return haloed(spot.x, spot.y, words, look);
        }),
      );
    },
    place(state, xy) {
      for (const [element, i] of [
        [hovered, state.hovered],
        [under, state.selected],
        [selected, state.selected],
      ]) {
        const seen = i >= 0 && Number.isFinite(xy[2 * i]);
        const [cx, cy] = seen ? toPixels(state.view, xy[2 * i], xy[2 * i + 1]) : [0, 0];
        assign(element, { cx, cy, visibility: seen ? null : "hidden" });
      }
      outline.setAttribute(
        "d",
        polyline(
          state.lasso.map(([x, y]) => toPixels(state.view, x, y)),
          true,
        ),
      );
    },
  };
}
