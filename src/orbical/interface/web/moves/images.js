// Images [.., H, W] moved about their center, as orbical.actions.on_images does it: every pixel of the
// result takes its value from the place that the inverse element sends it to. Elements count y
// upwards and pixels count rows downwards, so the matrix is turned over first.
import { inverse3, transformColumns } from "./matrices.js";
import { samplerOf } from "./interpolation.js";

const FINEST = 8; // places along each side of a pixel, at most
const NOWHERE = 1e6; // in pixels from the center: beyond the horizon of a homography

// Where the pixel (column, row), counted from the center, takes its value from.
function sourceOf(matrix) {
  const [a, b, c, d, e, f, g, h] = matrix;
  return (x, y) => {
    const depth = 1 + g * x - h * y; // 1 but for homographies
    return depth > 0 ? [(a * x - b * y + c) / depth, (-d * x + e * y - f) / depth] : [NOWHERE, NOWHERE];
  };
}

// The singular values of [[a, b], [c, d]], the larger one first, and its left singular vectors in columns.
function singular(a, b, c, d) {
  const [xx, xy, yy] = [a * a + b * b, a * c + b * d, c * c + d * d];
  const [mean, apart] = [(xx + yy) / 2, Math.hypot((xx - yy) / 2, xy)];
  const sizes = [Math.sqrt(mean + apart), Math.sqrt(Math.max(0, mean - apart))];
  const [s, angle] = [sizes[0], Math.atan2(2 * xy, xx - yy) / 2];
  if (apart < 1e-9 * mean) return { sizes, turn: [a / s, b / s, c / s, d / s] };
  return { sizes, turn: [Math.cos(angle), -Math.sin(angle), Math.sin(angle), Math.cos(angle)] };
}

// The places around the middle of a source that a pixel averages: more than one where the image shrinks.
function footprint(matrix, interpolation) {
  const [a, b, c, d, e, f, g, h] = matrix; // and its derivative at the center
  const { sizes, turn } = singular(a - c * g, -(b - c * h), -(d - f * g), e - f * h);
  const finest = interpolation === "nearest" ? 1 : FINEST;
  const count = Math.min(finest, Math.max(1, Math.ceil(sizes[0] - 1e-6)));
  const [u, v] = sizes.map((size) => (size > 1 + 1e-6 ? Math.sqrt(size * size - 1) : 0));
  const line = Array.from({ length: count }, (_, k) => (k + 0.5) / count - 0.5);
  return line.flatMap((y) => line.map((x) => [turn[0] * u * x + turn[1] * v * y, turn[2] * u * x + turn[3] * v * y]));
}

function resample(action, element, { data, shape }, [height, width]) {
  const [rows, columns] = shape.slice(-2);
  const planes = data.length / (rows * columns);
  const back = inverse3(element.plane ?? [1, 0, 0, 0, 1, 0, 0, 0, 1]);
  const interpolation = element.exact ? "nearest" : action.interpolation;
  const [source, sample] = [sourceOf(back), samplerOf(interpolation, action.padding)];
  const spots = footprint(back, interpolation);
  const moved = new Float32Array(planes * height * width);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const [x, y] = source(column - (width - 1) / 2, row - (height - 1) / 2);
      const [left, top] = [x + (columns - 1) / 2, y + (rows - 1) / 2];
      const taps = spots.flatMap(([dx, dy]) => sample(left + dx, top + dy, columns, rows));
      for (let plane = 0; plane < planes; plane++) {
        let sum = 0;
        const start = plane * rows * columns;
        for (const [place, weight] of taps) sum += weight * data[start + place];
        moved[(plane * height + row) * width + column] = sum / spots.length;
      }
    }
  }
  return { data: moved, shape: [...shape.slice(0, -2), height, width] };
}

export function moveImages(action, element, field) {
  return resample(action, element, field, field.shape.slice(-2));
}

// The plane moves the pixels [3, H, W], and the color of each is mixed anew.
export function moveColors(action, element, field) {
  const moved = moveImages(action, element, field);
  if (!element.color) return moved;
  return { ...moved, data: transformColumns(element.color, moved.data, 3) };
}

// A field of view of action.size pixels in a larger image. A whole-pixel shift falls onto pixels,
// where interpolation changes nothing.
export function moveWindow(action, element, field) {
  return resample(action, { ...element, exact: false }, field, [action.size, action.size]);
}

// Two frames [2, C, H, W], or the central action.size pixels of larger ones: the plane moves both,
// reversed time swaps them.
export function movePair(action, element, field) {
  const size = action.size ? [action.size, action.size] : field.shape.slice(-2);
  return swapped(resample(action, element, field, size), element);
}

// Two frames, the second first where time is reversed.
export function swapped(moved, element) {
  if (!(element.time < 0)) return moved;
  const half = moved.data.length / 2;
  const data = new Float32Array(moved.data.length);
  data.set(moved.data.subarray(half), 0);
  data.set(moved.data.subarray(0, half), half);
  return { ...moved, data };
}
