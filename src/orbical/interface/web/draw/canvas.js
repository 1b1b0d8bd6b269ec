/** Canvases as sharp as the screen, and colors of the page in numbers. */

const MOST_PIXELS = 1 << 24; // of a picture that is zoomed; beyond, the browser enlarges it

let density = 0; // of a picture that is being exported

/** Pixels of a canvas to one of the page. */
export function pixelRatio() {
  return density || devicePixelRatio || 1;
}

/** Let all canvases be painted for some pixels to one of the page; 0 for those of the screen. */
export function setPixelRatio(ratio) {
  density = ratio;
  document.dispatchEvent(new Event("themechange")); // plots on a canvas paint themselves anew
}

/** Give a canvas a size in CSS pixels at the screen's own resolution; returns its context. */
export function fit(canvas, width, height, wanted = pixelRatio()) {
  const ratio = Math.min(wanted, Math.sqrt(MOST_PIXELS / Math.max(width * height, 1)));
  const [w, h] = [Math.max(Math.round(width * ratio), 1), Math.max(Math.round(height * ratio), 1)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Paint the pixels of a canvas, `width` by `height`: `write(rgba)` fills their bytes. */
export function paintPixels(canvas, width, height, write) {
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  write(image.data);
  context.putImageData(image, 0, 0);
}

/** What a color such as `var(--model-0)` is for a canvas, at an element. */
export function resolve(element, color) {
  const named = /^var\((--[\w-]+)\s*(?:,\s*(.+))?\)$/.exec(String(color).trim());
  if (!named) return color;
  const value = getComputedStyle(element).getPropertyValue(named[1]).trim();
  return value || (named[2] ? resolve(element, named[2]) : "#888888");
}

/** Call back when the theme or the resolution of the screen changes, until `signal` aborts. */
export function onAppearance(callback, signal) {
  document.addEventListener("themechange", callback, { signal });
  let watched = null;
  const watch = () => {
    watched?.removeEventListener("change", changed);
    watched = matchMedia(`(resolution: ${devicePixelRatio}dppx)`);
    watched.addEventListener("change", changed, { signal });
  };
  const changed = () => {
    watch();
    callback();
  };
  watch();
}
