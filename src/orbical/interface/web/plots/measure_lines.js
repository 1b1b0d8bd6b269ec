/** Measures in words above a plot, one line a model: the legend as well. */

import { fixed } from "../draw/format.js";
import { INK, firstFitting, label, node } from "../draw/svg.js";
import { marker } from "./markers.js";

export const MEASURE_ROW = 17;

/** "ECE 0.12 [0.10, 0.14], 0.02 if calibrated" of one measure, and shorter wordings of it. */
export function measureText({ name, value, low, high, expected }) {
  const short = `${name.toUpperCase()} ${fixed(value, 3)}`;
  const known = (each) => each !== null && Number.isFinite(each);
  const middle = known(low) && known(high) ? `${short} [${fixed(low, 3)}, ${fixed(high, 3)}]` : short;
  return [known(expected) ? `${middle}, ${fixed(expected, 3)} if calibrated` : middle, middle, short];
}

/** A row for each model: its mark, its name, its first measure; returns the height. */
export function drawMeasures(group, models, measures, width) {
  models.forEach((model, m) => {
    const y = MEASURE_ROW * (m + 0.5) + 2;
    const found = measures.find((measure) => measure.model === model.name);
    group.append(marker(m, 12, y, 4.5, model.color));
    const texts = found?.text ? [found.text] : found ? measureText(found) : [];
    const wordings = texts.length ? texts.map((words) => `${model.name}: ${words}`) : [model.name];
    const line = label(22, y, firstFitting(wordings, width - 28), { "text-anchor": "start", fill: INK });
    line.append(node("title", {}, wordings[0]));
    group.append(line);
  });
  return models.length * MEASURE_ROW + 4;
}
