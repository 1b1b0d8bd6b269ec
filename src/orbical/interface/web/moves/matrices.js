// Small matrices as flat arrays, row by row.

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
