/** Where panels, their titles and the key of colors stand in a frame. */
import { fit } from "../draw/canvas.js";
import { modelInk } from "../draw/colors.js";
import { fitted, fittedNames, label, node } from "../draw/svg.js";
import { gridFor } from "../draw/tile_table.js";
import { barHeight, barWidth, barWords, colorBar } from "./colorbar.js";
import { worstOnCells } from "./marks.js";

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

const [LARGER, SMALL, BETWEEN_NAMES] = [1.2, 40, 6]; // times, pixels, pixels

/** The values of all models that a panel shows: those of its level, where there are several. */
export function valuesOf({ levels, values }, { level = 0 }) {
  return levels ? levels[level].values : values;
}

/**
 * Make a layout from its cells: `{ parts, aspect, margin, paint, decorate, locate, places, mark, step }`,
 * and optionally `position`, from coordinates to a position, and `marginIn`, the margin in a frame; `u, v` run over a panel from 0 to 1, left to right and top to bottom.
 */
export function panelGrid(orbit, cells) {
  /** @type {any[]} */
  let [panels, drawn, held, marks, pointer, worst] = [[], "", null, null, null, null];

  /** Axes, words and the key: all that stays while only the numbers change. */
  function furnish(frame, data) {
    const named = Boolean(data.models.length > 1 || data.models[0]?.name);
    const better = data.better && `(${data.better})`;
    const { plan, words } = layout(frame, data, named, better);
    panels = plan.panels;
    cells.begin?.();
    const parts = panels.flatMap((panel) => [
      ...titles(panel, data, named, plan),
      ...cells.decorate(panel, data, frame),
    ]);
    frame.back.replaceChildren(...parts, ...colorBar(plan.bar, data.range, frame.dark, words, data));
    marks = node("g", { class: "orbit-handle" });
    pointer = node("g", { "data-transient": "" });
    worst = node("g");
    frame.front.replaceChildren(worst, marks, pointer);
  }

  /** The key stands beside the panels, or below them where that leaves them much larger; without words if they are tiny. */
  function layout(frame, data, named, better) {
    const levels = data.levels?.length ?? 1;
    const margin = cells.marginIn?.(frame) ?? cells.margin;
    const planned = (key) => arrange(frame, data.models.length, { ...cells, margin }, { named, levels, ...key });
    const keys = [(lines) => ({ right: barWidth(data.range, lines) }), (lines) => ({ below: barHeight(lines) })];
    const [beside, below] = keys.map((room) => {
      const alone = planned(room(barWords(data.title, better, Infinity)));
      const words = barWords(data.title, better, alone.bar.room);
      return { words, plan: planned(room(words)) };
    });
    const best = below.plan.side > LARGER * beside.plan.side ? below : beside;
    if (best.plan.side >= SMALL) return best;
    const bare = { words: [], plan: planned({ below: barHeight([]) }) };
    return bare.plan.side > LARGER * best.plan.side ? bare : best;
  }

  function titles(panel, data, named, { wide, gap, titled }) {
    const drawn = [];
    const model = data.models[panel.m];
    if (named && panel.p === 0 && panel.level === 0) {
      const look = { fill: modelInk(model.color), "font-weight": 600, "font-size": 12 };
      const names = data.models.map(({ name }) => name);
      const words = fittedNames(names, wide + gap - BETWEEN_NAMES, 13)[panel.m];
      const name = label(panel.x + wide / 2, panel.y - panel.titleUp, words, look);
      name.append(node("title", {}, model.name));
      drawn.push(name);
    }
    if (titled && panel.top) {
      const title = [data.levels?.[panel.level].name, cells.parts[panel.p]].filter(Boolean).join(" ");
      const words = fitted(title, panel.width + gap);
      drawn.push(label(panel.x + panel.width / 2, panel.y - 8 - (cells.above ?? 0), words));
    }
    return drawn;
  }

  function draw(frame, data) {
    const models = data.models.map(({ name, color }) => name + color);
    const { width, height, dark } = frame;
    const levels = data.levels?.map(({ name }) => name);
    const { range, ramp, beyond, title, better } = data;
    const look = [width, height, dark, range, ramp, beyond, title, better, levels, ...models].join("|");
    if (look !== drawn || !marks.parentNode) furnish(frame, data);
    else cells.refresh?.(data, frame);
    drawn = look;
    const context = fit(frame.canvas, width, height);
    for (const panel of panels) {
      const values = valuesOf(data, panel).subarray(panel.m * orbit.size, (panel.m + 1) * orbit.size);
      cells.paint(context, panel, values, data.shades, dark, data.ramp);
    }
    worst.replaceChildren(...worstCases(data));
  }

  /** The worst cases, each in the panels of its model. */
  function worstCases(data) {
    return panels.flatMap((panel) =>
      data.marks
        .filter(({ m }) => m === panel.m)
        .flatMap((mark) =>
          cells
            .places(mark.element, cells.position?.(mark.coords) ?? [])
            .filter(([part]) => part === panel.p)
            .map(([, u, v]) => worstOnCells(panel.x + u * panel.width, panel.y + v * panel.height, mark)),
        ),
    );
  }

  function locate(x, y, phase) {
    const dragged = phase === "drag" || phase === "done";
    const panel = dragged ? held : panelAt(panels, x, y);
    if (phase === "press") held = panel ?? null;
    if (!panel) return null;
    const place = cells.locate(panel.p, (x - panel.x) / panel.width, (y - panel.y) / panel.height, dragged);
    if (!place) return null;
    const free = orbit.continuous && phase !== "hover";
    return { element: place.element, position: free ? (place.position ?? []) : [] };
  }

  /** Mark an element in every panel, in each of the cells where it stands. */
  function stamp(group, element, position, look) {
    const places = cells.places(element, position);
    const marked = panels.flatMap((panel) =>
      places
        .filter(([part]) => part === panel.p)
        .flatMap(([, u, v]) => cells.mark(panel, panel.x + u * panel.width, panel.y + v * panel.height, look)),
    );
    group.replaceChildren(...marked);
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
