// Moving inputs in the page, for a report that has no Python behind it: each action by its name.
import { moveColors, moveImages, moveWindow, movePair } from "./images.js";
import { movePairWindow } from "./pair.js";
import { moveRows, movePoints, moveVectors, stay } from "./points.js";
import { moveSignals, moveSignalWindow } from "./signals.js";
import { moveVolumes } from "./volumes.js";

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
