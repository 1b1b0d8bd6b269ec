// Small matrices as flat arrays, row by row.

// The inverse of an affine map of the plane, 3 x 3 with the last row 0 0 1.
export function inverse3([a, b, c, d, e, f]) {
  const size = a * e - b * d;
  const [p, q, r, s] = [e / size, -b / size, -d / size, a / size];
  return [p, q, -(p * c + q * f), r, s, -(r * c + s * f), 0, 0, 1];
}

// Apply a homogeneous matrix of d + 1 rows to rows of d numbers; shift = 0 leaves the shift out.
export function transformRows(matrix, rows, d, shift) {
  const wide = d + 1;
  const moved = new Float32Array(rows.length);
  for (let start = 0; start < rows.length; start += d) {
    for (let i = 0; i < d; i++) {
      let sum = shift * matrix[i * wide + d];
      for (let j = 0; j < d; j++) sum += matrix[i * wide + j] * rows[start + j];
      moved[start + i] = sum;
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
