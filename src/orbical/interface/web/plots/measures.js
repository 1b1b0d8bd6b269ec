/** Measures in words above a plot, one line a model: the legend as well. */

import { fixed } from "../draw/format.js";
import { INK, fitted, label, node } from "../draw/svg.js";
import { marker } from "./markers.js";

export const MEASURE_ROW = 17;

/** "ECE 0.12 [0.10, 0.14], 0.02 if calibrated" of one measure. */
export function inWords({ name, value, low, high, expected }) {
  let words = `${name.toUpperCase()} ${fixed(value, 3)}`;
  if (Number.isFinite(low) && Number.isFinite(high)) words += ` [${fixed(low, 3)}, ${fixed(high, 3)}]`;
  if (Number.isFinite(expected)) words += `, ${fixed(expected, 3)} if calibrated`;
  return words;
}

/** A row for each model: its mark, its name, its first measure; returns the height. */
export function drawMeasures(group, models, measures, width) {
  models.forEach((model, m) => {
    const y = MEASURE_ROW * (m + 0.5) + 2;
    const found = measures.find((measure) => measure.model === model.name);
    group.append(marker(m, 12, y, 4.5, model.colour));
    const words = found ? `${model.name}: ${found.text ?? inWords(found)}` : model.name;
    const line = label(22, y, fitted(words, width - 28), { "text-anchor": "start", fill: INK });
    line.append(node("title", {}, words));
    group.append(line);
  });
  return models.length * MEASURE_ROW + 4;
}
