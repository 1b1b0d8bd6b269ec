// Round regions of the embedding: what the keyboard draws instead of a lasso.

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
