/** Names of models beside their lines, in as many rows as the width needs. */

import { dashOf } from "../draw/colors.js";
import { INK, TEXT_SIZE, fittedMiddle, label, node, stroke, textWidth } from "../draw/svg.js";

const [SAMPLE, GAP, ROW] = [22, 14, 17];

/** Draw the legend into `group` from the top at `y`; returns its height. */
export function drawLegend(group, models, width, y = 0) {
  if (!models.length || (models.length === 1 && !models[0].name)) return 0;
  const rows = [[]];
  let used = 0;
  for (const [place, model] of models.entries()) {
    const words = fittedMiddle(model.name, width - SAMPLE - 16, TEXT_SIZE + 1);
    const wide = SAMPLE + 6 + textWidth(words, TEXT_SIZE + 1) + GAP;
    if (used + wide - GAP > width - 8 && rows.at(-1).length) {
      rows.push([]);
      used = 0;
    }
    rows.at(-1).push({ model, place, words, wide });
    used += wide;
  }
  rows.forEach((row, number) => {
    const total = row.reduce((sum, each) => sum + each.wide, -GAP);
    let x = Math.max((width - total) / 2, 4);
    const middle = y + ROW * (number + 0.5);
    for (const { model, place, words, wide } of row) {
      const look = { stroke: model.color, "stroke-width": 2.2, "stroke-dasharray": dashOf(model, place) || null };
      group.append(stroke(x, middle, x + SAMPLE, middle, look));
      const text = label(x + SAMPLE + 6, middle, words, {
        "text-anchor": "start",
        fill: INK,
        "font-size": TEXT_SIZE + 1,
      });
      if (words !== model.name) text.append(node("title", {}, model.name));
      group.append(text);
      x += wide;
    }
  });
  return rows.length * ROW;
}
