// The central action.size pixels of larger pairs, turned inside them: orbical.actions.PairWindow.
import { moveWindow, swapped } from "./images.js";

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
