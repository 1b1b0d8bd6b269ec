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
  return count <= 50000 ? 0.65 : 0.45;
}

/** Blend discs into premultiplied-free rgba pixels `[height, width, 4]`; points with `mask` 0 first. */
export function splat(pixels, width, height, { xy, colours, mask, scale, offset, radius, opacity }) {
  const reach = Math.ceil(radius);
  const stamp = [];
  for (let dy = -reach; dy <= reach; dy += 1) {
    for (let dx = -reach; dx <= reach; dx += 1) {
      const cover = Math.min(Math.max(radius + 0.5 - Math.hypot(dx, dy), 0), 1);
      if (cover > 0) stamp.push([dx, dy, cover]);
    }
  }
  const passes = mask ? [0, 1] : [1];
  for (const pass of passes) {
    for (let i = 0; i < xy.length / 2; i += 1) {
      if (mask && Number(mask[i] !== 0) !== pass) continue;
      const x = Math.round(xy[2 * i] * scale[0] + offset[0]);
      const y = Math.round(xy[2 * i + 1] * scale[1] + offset[1]);
      if (!(x >= -reach && y >= -reach && x < width + reach && y < height + reach)) continue;
      const alpha = opacity * (pass ? 1 : FADED) * (colours[4 * i + 3] / 255);
      for (const [dx, dy, cover] of stamp) {
        const [px, py] = [x + dx, y + dy];
        if (px < 0 || py < 0 || px >= width || py >= height) continue;
        blend(pixels, 4 * (py * width + px), colours, 4 * i, alpha * cover);
      }
    }
  }
}

function blend(pixels, at, colours, from, alpha) {
  const below = pixels[at + 3] / 255;
  const whole = alpha + below * (1 - alpha);
  for (let c = 0; c < 3; c += 1) {
    pixels[at + c] = (colours[from + c] * alpha + pixels[at + c] * below * (1 - alpha)) / whole;
  }
  pixels[at + 3] = whole * 255;
}
