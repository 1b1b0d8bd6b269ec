/** Where panels, their titles and the key of colors stand in a frame. */

import { gridFor } from "./tile_table.js";

const TITLE = 18;
const PART = 15;
const BETWEEN = 14; // models of several panels stand apart

/**
 * Arrange a panel for each model and part: `cells` says `parts`, `aspect`, `margin` and the room that words
 * need `inner` between columns, `above` and `innerBottom` between rows; `right` is the width of a key beside the
 * panels, or `below` the height of one below them. Several `levels` stand beside each other, and each model has a row
 * of its own.
 */
export function arrange({ width, height }, models, cells, { named, right = 0, below = 0, levels = 1 }) {
  const { margin, inner = 0, above = 0, innerBottom = 0 } = cells;
  const count = cells.parts.length * levels; // panels of a model
  const titled = cells.parts.some(Boolean) || levels > 1;
  const name = named ? TITLE : 4;
  const top = name + (titled ? PART : 0) + above;
  const gap = { x: 12 + inner, y: 8 + name + above + innerBottom, model: count > 1 ? BETWEEN : 0 };
  const room = {
    width: Math.max(width - margin.left - margin.right - (right && right + 9), 20),
    height: Math.max(height - top - margin.bottom - below - 4, 20),
  };
  const most = levels > 1 ? 1 : models;
  const grid = gridFor(models, count, room.width, room.height, cells.aspect, gap, most);
  const used = {
    width: grid.columns * (grid.width + gap.x) - gap.x + (grid.across - 1) * gap.model,
    height: grid.down * (grid.height + gap.y) - gap.y,
  };
  const left = margin.left + Math.max((room.width - used.width) / 2, 0);
  const start = top + Math.max((room.height - used.height) / 2, 0);
  const panels = [];
  for (let m = 0; m < models; m += 1) {
    for (let k = 0; k < count; k += 1) {
      const [row, place] = [Math.floor(m / grid.across), m % grid.across];
      const column = place * count + k;
      panels.push({
        m,
        p: k % cells.parts.length,
        level: Math.floor(k / cells.parts.length),
        width: grid.width,
        height: grid.height,
        x: left + column * (grid.width + gap.x) + place * gap.model,
        y: start + row * (grid.height + gap.y),
        first: column === 0,
        top: row === 0,
        last: m + grid.across >= models,
        titleUp: above + (titled && row === 0 ? PART : 0) + TITLE / 2,
      });
    }
  }
  /** The room for words along the bar, about its middle. */
  const about = (middle, side) => 2 * Math.min(middle, side - middle) - 8;
  const bar = below
    ? {
        x: left,
        y: start + used.height + margin.bottom + 6,
        length: used.width,
        room: about(left + used.width / 2, width),
        across: true,
      }
    : {
        x: left + used.width + margin.right + 8,
        y: start,
        length: used.height,
        room: about(start + used.height / 2, height),
        across: false,
      };
  return { panels, bar, titled, side: grid.width, gap: gap.x, wide: count * (grid.width + gap.x) - gap.x };
}

/** The panel at a place, or none. */
export function panelAt(panels, x, y) {
  return panels.find(
    (panel) => x >= panel.x && x <= panel.x + panel.width && y >= panel.y && y <= panel.y + panel.height,
  );
}
