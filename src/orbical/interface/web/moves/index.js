// Moving inputs in a report as Python does: images, windows, pairs, points, volumes, signals.

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

// The inverse of a map of the plane, 3 x 3, with the last entry 1: the cofactors, scaled.
export function inverse3([a, b, c, d, e, f, g, h, i]) {
  const cofactors = [e * i - f * h, c * h - b * i, b * f - c * e, f * g - d * i, a * i - c * g, c * d - a * f];
  const last = [d * h - e * g, b * g - a * h, a * e - b * d];
  return [...cofactors, ...last].map((entry) => entry / last[2]);
}

// The inverse of an affine map of space, 4 x 4.
export function inverseAffine3d([a, b, c, x, d, e, f, y, g, h, i, z]) {
  const rows = [
    [e * i - f * h, c * h - b * i, b * f - c * e],
    [f * g - d * i, a * i - c * g, c * d - a * f],
    [d * h - e * g, b * g - a * h, a * e - b * d],
  ];
  const size = a * rows[0][0] + b * rows[1][0] + c * rows[2][0];
  const inverse = rows.map(([p, q, r]) => [p, q, r, -(p * x + q * y + r * z)].map((entry) => entry / size));
  return [...inverse.flat(), 0, 0, 0, 1];
}

// Apply a homogeneous matrix of d + 1 rows to rows of d numbers; shift = 0 leaves shift and depth out.
export function transformRows(matrix, rows, d, shift) {
  const wide = d + 1;
  const moved = new Float32Array(rows.length);
  for (let start = 0; start < rows.length; start += d) {
    let depth = 1;
    for (let j = 0; j < d; j++) depth += shift * matrix[d * wide + j] * rows[start + j];
    for (let i = 0; i < d; i++) {
      let sum = shift * matrix[i * wide + d];
      for (let j = 0; j < d; j++) sum += matrix[i * wide + j] * rows[start + j];
      moved[start + i] = depth > 0 ? sum / depth : NaN;
    }
  }
  return moved;
}

// Apply a homogeneous matrix of d + 1 rows to columns: d rows of numbers, one column for each point.
export function transformColumns(matrix, rows, d) {
  const [wide, count] = [d + 1, rows.length / d];
  const moved = new Float32Array(rows.length);
  for (let i = 0; i < d; i++) {
    for (let k = 0; k < count; k++) {
      let sum = matrix[i * wide + d];
      for (let j = 0; j < d; j++) sum += matrix[i * wide + j] * rows[j * count + k];
      moved[i * count + k] = sum;
    }
  }
  return moved;
}

// Cut the central square out of planes [.., H, W].
function central({ data, shape }, size) {
  const [rows, columns] = shape.slice(-2);
  const [top, left] = [Math.floor((rows - size) / 2), Math.floor((columns - size) / 2)];
  const planes = data.length / (rows * columns);
  const cut = new Float32Array(planes * size * size);
  for (let plane = 0; plane < planes; plane++) {
    for (let row = 0; row < size; row++) {
      const start = (plane * rows + top + row) * columns + left;
      cut.set(data.subarray(start, start + size), (plane * size + row) * size);
    }
  }
  return { data: cut, shape: [...shape.slice(0, -2), size, size] };
}

// The plane turns both frames about the center, reversed time swaps them.
export function movePairWindow(action, element, field) {
  const seen = element.exact ? central(field, action.size) : field;
  const moved = moveWindow(action, element, seen);
  return swapped(moved, element);
}

export function moveSignals(_action, element, { data, shape }) {
  const length = shape[shape.length - 1];
  const shift = element.shift ?? 0;
  const whole = Math.floor(shift);
  const share = shift - whole;
  const gain = element.gain ?? 1;
  const wrapped = (t) => ((t % length) + length) % length;
  const moved = new Float32Array(data.length);
  for (let start = 0; start < data.length; start += length) {
    const at = (t) => data[start + (element.time < 0 ? length - 1 - t : t)];
    for (let t = 0; t < length; t += 1) {
      const here = at(wrapped(t - whole));
      moved[start + t] = gain * (share ? here + share * (at(wrapped(t - whole - 1)) - here) : here);
    }
  }
  return { data: moved, shape };
}

// A view of action.size samples in the middle of longer signals.
export function moveSignalWindow(action, element, field) {
  const { data, shape } = moveSignals(action, element, field);
  const length = shape[shape.length - 1];
  const start = Math.floor((length - action.size) / 2);
  const rows = data.length / length;
  const view = new Float32Array(rows * action.size);
  for (let row = 0; row < rows; row += 1) {
    const from = row * length + start;
    view.set(data.subarray(from, from + action.size), row * action.size);
  }
  return { data: view, shape: [...shape.slice(0, -1), action.size] };
}

const PART = { 2: "plane", 3: "space" };

// Rows act by x -> x[rows], along the first dimension of one input.
function reordered(element, { data, shape }) {
  if (!element.rows) return { data, shape };
  const width = data.length / shape[0];
  const moved = data.slice();
  element.rows.forEach((from, to) => {
    moved.set(data.subarray(from * width, (from + 1) * width), to * width);
  });
  return { data: moved, shape };
}

function turned(element, { data, shape }, shift) {
  const d = shape[shape.length - 1];
  const matrix = element[PART[d]];
  return { data: matrix ? transformRows(matrix, data, d, shift) : data, shape };
}

export function movePoints(_action, element, field) {
  return reordered(element, turned(element, field, 1));
}

export function moveVectors(action, element, field) {
  const moved = turned(element, field, 0);
  return action.per_point ? reordered(element, moved) : moved;
}

export function moveRows(_action, element, field) {
  return reordered(element, field);
}

export function stay(_action, _element, field) {
  return field;
}

const MOST_VOXELS = 1 << 18; // as in orbical.interface.session.input_pictures
const STILL = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];

// Where the voxel [depth, row, column] takes its value from, each counted from the center: y is up, rows go down.
// Voxels have sides `step` in the units of space.
function volumeSourceOf(matrix, sides, step) {
  const middle = sides.map((side) => (side - 1) / 2);
  const along = (i, [z, y, x]) => matrix[i] * x - matrix[i + 1] * y + matrix[i + 2] * z + matrix[i + 3];
  return (voxel) => {
    const place = voxel.map((index, axis) => (index - middle[axis]) * step[axis]);
    return [along(8, place), -along(4, place), along(0, place)].map((from, axis) => from / step[axis] + middle[axis]);
  };
}

export function moveVolumes(action, element, { data, shape }) {
  const sides = shape.slice(-3);
  const [depth, rows, columns] = sides;
  const channels = data.length / (depth * rows * columns);
  const source = volumeSourceOf(inverseAffine3d(element.space ?? STILL), sides, action.spacing ?? [1, 1, 1]);
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

const MOVES = {
  Images: moveImages,
  ColorImages: moveColors,
  Window: moveWindow,
  ImagePair: movePair,
  PairWindow: movePairWindow,
  Points: movePoints,
  Vectors: moveVectors,
  Volumes: moveVolumes,
  Rows: moveRows,
  Signals: moveSignals,
  SignalWindow: moveSignalWindow,
  Trivial: stay,
};

// Whether an input under this action (as Python describes it) can be moved here.
export function canMove(action) {
  if (action.action === "Fields") return Object.values(action.fields).every(canMove);
  return action.action in MOVES;
}

// Move the fields {name: {data, shape}} of one input by one element of the group:
// element = {plane: 9 numbers, space: 16 numbers, color: 16 numbers, time, shift, gain, rows}, each where the group has it, and
// exact, which says that the whole group maps a square grid of pixels onto itself.
export function moveInput(action, element, fields) {
  const moved = {};
  for (const [name, field] of Object.entries(fields)) {
    const own = action.action === "Fields" ? action.fields[name] : action;
    moved[name] = MOVES[own.action](own, element, field);
  }
  return moved;
}
