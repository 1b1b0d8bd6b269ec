/** Many points into pixels without a graphics card. */

/** How faint a point outside of the subset is. */
export const FADED = 0.16;

/** The radius of points in pixels: smaller the more there are, larger when zoomed in. */
export function pointRadius(count, zoom = 1) {
  return Math.min(Math.max(60 / Math.sqrt(Math.max(count, 1)), 1.4), 4.2) * Math.min(zoom ** 0.35, 2.5);
}

/** How opaque points are: less where they lie on top of each other. */
export function pointOpacity(count) {
  if (count <= 2000) return 0.9;
  if (count <= 50000) return 0.65;
  return count <= 500000 ? 0.45 : 0.3;
}

/** A pixel as covered as this takes no more color. */
const FULL = 250 / 255;

/**
 * Put discs into rgba pixels `[height, width, 4]`, the last point and those with `mask` 1 on top.
 * Worked from the front to the back, so that what is covered costs next to nothing.
 */
export function rasterizePoints(pixels, width, height, { xy, colors, mask, scale, offset, radius, opacity }) {
  const stamp = discOf(radius);
  const reach = Math.ceil(radius);
  const cover = new Float32Array(width * height);
  const shade = new Float32Array(3 * width * height);
  for (const pass of mask ? [1, 0] : [1]) {
    const strength = (opacity * (pass ? 1 : FADED)) / 255;
    for (let i = xy.length / 2 - 1; i >= 0; i -= 1) {
      if (mask && (mask[i] !== 0 ? 1 : 0) !== pass) continue;
      const x = Math.round(xy[2 * i] * scale[0] + offset[0]);
      const y = Math.round(xy[2 * i + 1] * scale[1] + offset[1]);
      if (!(x >= -reach && y >= -reach && x < width + reach && y < height + reach)) continue;
      const c = 4 * i;
      const alpha = strength * colors[c + 3];
      for (let k = 0; k < stamp.length; k += 3) {
        const px = x + stamp[k];
        const py = y + stamp[k + 1];
        if (px < 0 || py < 0 || px >= width || py >= height) continue;
        const at = py * width + px;
        const covered = cover[at];
        if (covered >= FULL) continue;
        const share = (1 - covered) * alpha * stamp[k + 2];
        shade[3 * at] += share * colors[c];
        shade[3 * at + 1] += share * colors[c + 1];
        shade[3 * at + 2] += share * colors[c + 2];
        cover[at] = covered + share;
      }
    }
  }
  for (let at = 0; at < cover.length; at += 1) {
    if (cover[at] === 0) continue;
    for (let c = 0; c < 3; c += 1) pixels[4 * at + c] = Math.round(shade[3 * at + c] / cover[at]);
    pixels[4 * at + 3] = cover[at] >= FULL ? 255 : Math.round(255 * cover[at]);
  }
}

/** The pixels of a disc: column, row and how much of the pixel it covers, flat. */
function discOf(radius) {
  const reach = Math.ceil(radius);
  /** @type {number[]} */
  const found = [];
  for (let dy = -reach; dy <= reach; dy += 1) {
    for (let dx = -reach; dx <= reach; dx += 1) {
      const covered = Math.min(Math.max(radius + 0.5 - Math.hypot(dx, dy), 0), 1);
      if (covered > 0) found.push(dx, dy, covered);
    }
  }
  return Float32Array.from(found);
}
