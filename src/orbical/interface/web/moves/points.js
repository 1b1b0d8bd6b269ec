// Points and vectors: turned, shifted (points alone) and reordered.
import { transformRows } from "./matrices.js";

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
