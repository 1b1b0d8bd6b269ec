// Volumes [C, D, H, W] moved about their center, as orbical.actions.Volumes does it. Of large ones only the three middle
// slices are computed, in one picture [C, H + 1 + D, W + 1 + D], whose axes line up, with NaN between them.
import { inverseAffine3d } from "./matrices.js";
import { axisSamplerOf } from "./interpolation.js";

const MOST_VOXELS = 1 << 18; // as in orbical.interface.session.input_pictures
const STILL = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];

// Where the voxel [depth, row, column] takes its value from, each counted from the center: y is up, rows go down.
function sourceOf(matrix, sides) {
  const middle = sides.map((side) => (side - 1) / 2);
  const along = (i, [z, y, x]) => matrix[i] * x - matrix[i + 1] * y + matrix[i + 2] * z + matrix[i + 3];
  return (voxel) => {
    const place = voxel.map((index, axis) => index - middle[axis]);
    return [along(8, place) + middle[0], -along(4, place) + middle[1], along(0, place) + middle[2]];
  };
}

export function moveVolumes(action, element, { data, shape }) {
  const sides = shape.slice(-3);
  const [depth, rows, columns] = sides;
  const channels = data.length / (depth * rows * columns);
  const source = sourceOf(inverseAffine3d(element.space ?? STILL), sides);
  const sample = axisSamplerOf(action.interpolation, action.padding);

  // Write the channels of a voxel into `out` at `start`, `step` apart.
  function write(out, start, step, voxel) {
    const [planes, lines, points] = source(voxel).map((place, axis) => sample(place, sides[axis]));
    for (let channel = 0; channel < channels; channel++) {
      let sum = 0;
      for (const [k, a] of planes)
        for (const [j, b] of lines)
          for (const [i, c] of points) sum += a * b * c * data[((channel * depth + k) * rows + j) * columns + i];
      out[channel * step + start] = sum;
    }
  }

  if (depth * rows * columns <= MOST_VOXELS) {
    const moved = new Float32Array(data.length);
    for (let k = 0, start = 0; k < depth; k++)
      for (let j = 0; j < rows; j++)
        for (let i = 0; i < columns; i++) write(moved, start++, depth * rows * columns, [k, j, i]);
    return { data: moved, shape: [channels, ...sides] };
  }
  const [height, width] = [rows + 1 + depth, columns + 1 + depth];
  const picture = new Float32Array(channels * height * width).fill(NaN);
  const draw = (row, column, voxel) => write(picture, row * width + column, height * width, voxel);
  const [front, level, side] = sides.map((count) => Math.floor(count / 2));
  for (let j = 0; j < rows; j++) {
    for (let i = 0; i < columns; i++) draw(j, i, [front, j, i]);
    for (let k = 0; k < depth; k++) draw(j, columns + 1 + k, [k, j, side]);
  }
  for (let k = 0; k < depth; k++) {
    for (let i = 0; i < columns; i++) draw(rows + 1 + k, i, [k, level, i]);
  }
  return { data: picture, shape: [channels, height, width] };
}
