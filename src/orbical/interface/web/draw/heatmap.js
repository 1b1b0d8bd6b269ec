/** Values into the pixels of a heat map. */

import { MISSING, parse, ramp, rampPlace } from "./colors.js";

/** Fill rgba bytes: pixel i shows the value of `cells[i]`; -1 is left clear, a missing value gray. */
export function paintHeatmap(pixels, cells, values, range, dark, kind = "sequential") {
  const table = ramp(kind, dark);
  const [red, green, blue] = parse(MISSING[dark ? "dark" : "light"]);
  for (let i = 0; i < cells.length; i += 1) {
    const at = 4 * i;
    if (cells[i] < 0) {
      pixels[at + 3] = 0;
      continue;
    }
    const value = values[cells[i]];
    if (Number.isFinite(value)) {
      const place = 3 * rampPlace(value, range);
      pixels[at] = table[place];
      pixels[at + 1] = table[place + 1];
      pixels[at + 2] = table[place + 2];
    } else {
      pixels[at] = red;
      pixels[at + 1] = green;
      pixels[at + 2] = blue;
    }
    pixels[at + 3] = 255;
  }
}

/** Each pixel's element in a polar map: azimuth from the right, counter-clockwise; radius the angle. */
export function polarCells(side, azimuths, angles, elementOf) {
  const cells = new Int32Array(side * side).fill(-1);
  const [middle, most] = [side / 2, angles[angles.length - 1]];
  for (let row = 0; row < side; row += 1) {
    for (let column = 0; column < side; column += 1) {
      const [x, y] = [(column + 0.5 - middle) / middle, (middle - row - 0.5) / middle];
      const radius = Math.hypot(x, y);
      if (radius > 1.03) continue;
      const [azimuth, angle] = polarPlace(x, y, most);
      cells[row * side + column] = elementOf(nearestTurn(azimuths, azimuth), nearestSorted(angles, angle));
    }
  }
  return cells;
}

/** Azimuth in degrees and angle at a place of the unit disc, upwards positive. */
export function polarPlace(x, y, most) {
  return [((Math.atan2(y, x) * 180) / Math.PI + 360) % 360, Math.min(Math.hypot(x, y), 1) * most];
}

/** The nearest of ascending azimuths around the turn. */
export function nearestTurn(azimuths, azimuth) {
  let [best, least] = [0, Infinity];
  for (let i = 0; i < azimuths.length; i += 1) {
    const off = Math.abs(((azimuths[i] - azimuth + 540) % 360) - 180);
    if (off < least) [best, least] = [i, off];
  }
  return best;
}

/** The nearest of ascending places. */
export function nearestSorted(places, value) {
  let k = 0;
  while (k < places.length - 1 && (places[k] + places[k + 1]) / 2 < value) k += 1;
  return k;
}
