/** A layer of points: by WebGL2, or by pixels where there is none. */

import { FADED, rasterizePoints } from "../draw/point_raster.js";

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
