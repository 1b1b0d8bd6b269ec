/** Layouts on which a model is coloured: panels side by side, one scale of colours, marks on top. */

import { fit } from "../draw/canvas.js";
import { gridFor } from "../draw/tables.js";
import { fitted, label, node } from "../draw/svg.js";
import { barWidth, colourBar } from "./colourbar.js";

const TITLE = 18;

/**
 * Make a layout from its cells: `{ parts, aspect, margin, paint, decorate, locate, places, mark, step }`,
 * where `u, v` run over a panel from 0 to 1, left to right and top to bottom.
 */
export function surface(orbit, cells) {
  let [panels, drawn, held, marks, pointer] = [[], "", null, null, null];

  function arrange(frame, data) {
    const { margin, parts } = cells;
    const partTitles = parts.some(Boolean);
    const named = data.models.length > 1 || data.models[0]?.name;
    const words = [data.title, data.better && `(${data.better})`].filter(Boolean);
    const right = barWidth(data.range, words);
    const above = named ? TITLE : 4;
    const top = above + (partTitles ? 15 : 0) + (cells.above ?? 0);
    const gaps = { x: 12 + (cells.inner ?? 0), y: 8 + above + (cells.above ?? 0) + (cells.innerBottom ?? 0) };
    const room = { width: frame.width - margin.left - margin.right - right - 6, height: frame.height - top - margin.bottom - 4 };
    const grid = gridFor(data.models.length, parts.length, Math.max(room.width, 20), Math.max(room.height, 20), cells.aspect, gaps);
    const used = { width: grid.columns * grid.width + (grid.columns - 1) * gaps.x, height: grid.down * grid.height + (grid.down - 1) * gaps.y };
    const left = margin.left + Math.max((room.width - used.width) / 2, 0);
    const start = top + Math.max((room.height - used.height) / 2, 0);
    panels = data.models.flatMap((model, m) => parts.map((part, p) => {
      const [row, column] = [Math.floor(m / grid.across), (m % grid.across) * parts.length + p];
      return { m, p, x: left + column * (grid.width + gaps.x), y: start + row * (grid.height + gaps.y), width: grid.width, height: grid.height, first: column === 0, top: row === 0, last: row === grid.down - 1 || m + grid.across >= data.models.length };
    }));
    const bar = { x: left + used.width + margin.right + 8, y: start, height: used.height };
    return { named, partTitles, bar, words, wide: parts.length * (grid.width + gaps.x) - gaps.x, gap: gaps.x };
  }

  function furnish(frame, data) {
    const { named, partTitles, bar, words, wide, gap } = arrange(frame, data);
    const parts = [];
    cells.begin?.();
    for (const panel of panels) {
      const model = data.models[panel.m];
      const high = panel.y - (partTitles && panel.top ? 15 : 0) - (cells.above ?? 0) - TITLE / 2;
      if (named && panel.p === 0) {
        const words = label(panel.x + wide / 2, high, fitted(model.name, wide + gap, 13), { fill: model.colour, "font-weight": 600, "font-size": 12 });
        words.append(node("title", {}, model.name));
        parts.push(words);
      }
      if (partTitles && panel.top) parts.push(label(panel.x + panel.width / 2, panel.y - 8 - (cells.above ?? 0), fitted(cells.parts[panel.p], panel.width + gap)));
      parts.push(...cells.decorate(panel, data, frame));
    }
    parts.push(...colourBar(bar.x, bar.y, bar.height, data.range, frame.dark, words));
    frame.back.replaceChildren(...parts);
    marks = node("g", { class: "orbit-handle" });
    pointer = node("g", { "data-transient": "" });
    frame.front.replaceChildren(marks, pointer);
  }

  function draw(frame, data) {
    // Words and axes stay as they are while only the numbers change.
    const look = [frame.width, frame.height, frame.dark, data.range, data.title, data.better, ...data.models.map(({ name, colour }) => name + colour)].join("|");
    if (look !== drawn || !marks.parentNode) furnish(frame, data);
    else cells.refresh?.(data, frame);
    drawn = look;
    const context = fit(frame.canvas, frame.width, frame.height);
    for (const panel of panels) {
      cells.paint(context, panel, data.values.subarray(panel.m * orbit.size, (panel.m + 1) * orbit.size), data.range, frame.dark);
    }
  }

  function locate(x, y, phase) {
    const inside = (panel) => x >= panel.x && x <= panel.x + panel.width && y >= panel.y && y <= panel.y + panel.height;
    const found = panels.find(inside);
    const panel = phase === "drag" || phase === "done" ? held : found;
    if (phase === "press") held = found ?? null;
    if (!panel) return null;
    const place = cells.locate(panel.p, (x - panel.x) / panel.width, (y - panel.y) / panel.height, phase !== "hover" && phase !== "press");
    if (!place) return null;
    return { element: place.element, position: orbit.continuous && phase !== "hover" ? place.position ?? [] : [] };
  }

  function stamp(group, element, position, look) {
    group.replaceChildren(...panels.flatMap((panel) =>
      cells.places(element, position).filter(([part]) => part === panel.p).flatMap(([, u, v]) => cells.mark(panel, panel.x + u * panel.width, panel.y + v * panel.height, look)),
    ));
  }

  return {
    canvas: true,
    draw,
    locate,
    step: cells.step,
    name: cells.name,
    mark: (element, position) => marks && stamp(marks, element, position, "now"),
    hover: (place) => pointer && (place ? stamp(pointer, place.element, [], "hover") : pointer.replaceChildren()),
  };
}
