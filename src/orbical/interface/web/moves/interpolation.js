// Reading an image between its pixels: which pixels, and with which weights. A sampler takes a place
// in pixels (0 is the middle of the first one) and gives pairs [index in the plane, weight]. What
// lies outside is zero, the border, or the image mirrored at its edge.
const ROUNDING = 1e-4; // of a pixel: places that single precision puts on the edge are on it

function reflected(place, size) {
  const inside = (((place + 0.5) % (2 * size)) + 2 * size) % (2 * size);
  return Math.min(size - 1, Math.max(0, (inside > size ? 2 * size - inside : inside) - 0.5));
}

const OUTSIDE = {
  zeros: (place) => place,
  border: (place, size) => Math.min(size - 1, Math.max(0, place)),
  reflect: reflected,
};

function bilinear(x, y, columns, rows, outside) {
  const [u, v] = [outside(x, columns), outside(y, rows)];
  const [left, top] = [Math.floor(u), Math.floor(v)];
  const [fx, fy] = [u - left, v - top];
  return [
    [left, top, (1 - fx) * (1 - fy)],
    [left + 1, top, fx * (1 - fy)],
    [left, top + 1, (1 - fx) * fy],
    [left + 1, top + 1, fx * fy],
  ];
}

// The four weights of cubic convolution with a = -3/4.
function cubicWeights(t) {
  const a = -0.75;
  const near = (s) => ((a + 2) * s - (a + 3)) * s * s + 1;
  const far = (s) => ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
  return [far(t + 1), near(t), near(1 - t), far(2 - t)];
}

function bicubic(x, y, columns, rows, outside) {
  const [left, top] = [Math.floor(x), Math.floor(y)];
  const [across, down] = [cubicWeights(x - left), cubicWeights(y - top)];
  const taps = [];
  for (let j = 0; j < 4; j++) {
    for (let i = 0; i < 4; i++) {
      const place = [outside(left - 1 + i, columns), outside(top - 1 + j, rows)];
      taps.push([Math.round(place[0]), Math.round(place[1]), across[i] * down[j]]);
    }
  }
  return taps;
}

const nearest = (x, y) => [[Math.round(x), Math.round(y), 1]];
const WAYS = { bilinear, bicubic, nearest };

function onPixel(place) {
  const whole = Math.round(place);
  return Math.abs(place - whole) < ROUNDING ? whole : place;
}

export function samplerOf(interpolation, padding) {
  const [way, outside] = [WAYS[interpolation], OUTSIDE[padding]];
  return (x, y, columns, rows) =>
    way(onPixel(x), onPixel(y), columns, rows, outside)
      .filter(([i, j, weight]) => weight && i >= 0 && j >= 0 && i < columns && j < rows)
      .map(([i, j, weight]) => [j * columns + i, weight]);
}

// The same along one axis: pairs [index, weight] for a place on a line of some size.
export function axisSamplerOf(interpolation, padding) {
  const outside = OUTSIDE[padding];
  return (place, size) => {
    const inside = outside(onPixel(place), size);
    const first = interpolation === "nearest" ? Math.round(inside) : Math.floor(inside);
    const after = interpolation === "nearest" ? 0 : inside - first;
    const pairs = [
      [first, 1 - after],
      [first + 1, after],
    ];
    return pairs.filter(([index, weight]) => weight && index >= 0 && index < size);
  };
}
