// Images [.., H, W] moved about their center, as orbical.actions.images does it: every pixel of the
// result takes its value from the place that the inverse element sends it to. Elements count y
// upwards and pixels count rows downwards, so the matrix is turned over first.
import { inverse3 } from "./matrices.js";
import { samplerOf } from "./interpolation.js";

// Where the pixel (column, row), counted from the center, takes its value from.
function sourceOf(plane) {
  const [a, b, c, d, e, f] = inverse3(plane ?? [1, 0, 0, 0, 1, 0, 0, 0, 1]);
  return (x, y) => [a * x - b * y + c, -d * x + e * y - f];
}

function resample(action, element, { data, shape }, [height, width]) {
  const [rows, columns] = shape.slice(-2);
  const planes = data.length / (rows * columns);
  const source = sourceOf(element.plane);
  const sample = samplerOf(element.exact ? "nearest" : action.interpolation, action.padding);
  const moved = new Float32Array(planes * height * width);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const [x, y] = source(column - (width - 1) / 2, row - (height - 1) / 2);
      const taps = sample(x + (columns - 1) / 2, y + (rows - 1) / 2, columns, rows);
      for (let plane = 0; plane < planes; plane++) {
        let sum = 0;
        const start = plane * rows * columns;
        for (const [place, weight] of taps) sum += weight * data[start + place];
        moved[(plane * height + row) * width + column] = sum;
      }
    }
  }
  return { data: moved, shape: [...shape.slice(0, -2), height, width] };
}

export function moveImages(action, element, field) {
  return resample(action, element, field, field.shape.slice(-2));
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
  const moved = resample(action, element, field, size);
  if (!(element.time < 0)) return moved;
  const half = moved.data.length / 2;
  const swapped = new Float32Array(moved.data.length);
  swapped.set(moved.data.subarray(half), 0);
  swapped.set(moved.data.subarray(0, half), half);
  return { ...moved, data: swapped };
}
