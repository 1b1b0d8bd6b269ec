/** A small letter as an element of the plane turns and mirrors it, with the arrow of time. */
import { colorOf, readableOn } from "../draw/colors.js";
import { WAYS } from "../draw/orbits.js";
import { clamp } from "../draw/scales.js";
import { fitted, INK, label, node, polyline, round, textWidth } from "../draw/svg.js";
import { tableNames, tableOf } from "../draw/tile_table.js";
import { cellRim, cross } from "./marks.js";
import { panelGrid, valuesOf } from "./panel_grid.js";

/** The letter F: no turn and no mirror leaves it as it is. */
const LETTER = [
  [
    [-0.5, -0.8],
    [-0.5, 0.8],
    [0.55, 0.8],
  ],
  [
    [-0.5, 0.1],
    [0.3, 0.1],
  ],
];

/** The glyph of an element, centered on 0, or null where the group does not act on the plane or time. */
export function orientation(orbit, element, size) {
  if (size < 12 || (!orbit.plane && !orbit.time)) return null;
  const drawn = node("g", {
    fill: "none",
    "stroke-width": Math.max(size / 14, 1.3),
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  });
  const timed = Boolean(orbit.time);
  const unit = (size / 2) * (timed && orbit.plane ? 0.72 : 0.92);
  const raise = timed && orbit.plane ? -size * 0.16 : 0;
  if (orbit.plane) drawn.append(node("path", { d: letter(orbit.plane.data, element, unit, raise) }));
  const back = timed && Number(orbit.time.data[element]) < 0;
  if (timed) drawn.append(node("path", { d: arrow(back, size, orbit.plane ? size * 0.36 : 0) }));
  return drawn;
}

/** The letter moved by the matrix of the element; upwards is upwards. */
function letter(matrices, element, unit, raise) {
  const [a, b, , c, d] = Array.from(matrices.slice(9 * element, 9 * element + 6));
  const moved = (/** @type {number[]} */ [x, y]) => [(a * x + b * y) * unit, raise - (c * x + d * y) * unit];
  return LETTER.map((line) => polyline(line.map(moved))).join("");
}

/** Time runs to the right, or back. */
function arrow(back, size, y) {
  const [half, head] = [size * 0.36, size * 0.12];
  const tip = back ? -half : half;
  const inner = tip + (back ? head : -head);
  return (
    polyline([
      [-half, y],
      [half, y],
    ]) +
    polyline([
      [inner, y - head],
      [tip, y],
      [inner, y + head],
    ])
  );
}

const [GAP, ROOMY] = [1, 18];

/** The drawing of tiles for `createOrbitPlot`. */
export function tiles(orbit) {
  const table = tableOf(orbit.index, orbit.shape, orbit.coords);
  const names = tableNames(table, orbit.coords);
  const { rows, columns, cells } = table;
  const at = new Map();
  cells.forEach((element, cell) => element >= 0 && at.set(element, cell));
  const crowded = { rows: rows > 16, columns: columns > 12 };
  const widest = Math.max(0, ...names.rows.words.map((word) => textWidth(word)));
  const longest = Math.max(0, ...names.columns.words.map((word) => textWidth(word)));
  const wordy = Math.min(Math.ceil(widest), 110);
  const left = 8 + (names.rows.name ? 14 : 0);
  const bottom = 8 + (crowded.columns ? 0 : 14) + (names.columns.name ? 14 : 0);
  /** Whether the words of the rows leave most of a frame to the tiles; if not, the tiles alone are drawn. */
  const told = ({ width }) => !crowded.rows && 3 * wordy < width;
  const marginIn = (frame) => ({ left: left + (told(frame) ? wordy : 0), right: 4, bottom });
  let written = [];
  const size = (panel) => [panel.width / columns, panel.height / rows];

  function paint(context, panel, values, range, dark, ramp) {
    const [wide, high] = size(panel);
    const gap = Math.min(wide, high) > 8 ? GAP : 0;
    cells.forEach((element, cell) => {
      if (element < 0) return;
      context.fillStyle = colorOf(values[element], range, dark, ramp);
      const [x, y] = [panel.x + (cell % columns) * wide, panel.y + Math.floor(cell / columns) * high];
      context.fillRect(x + gap, y + gap, wide - 2 * gap, high - 2 * gap);
    });
  }

  function decorate(panel, data, frame) {
    const [wide, high] = size(panel);
    const drawn = [];
    const corner = (cell) => [panel.x + (cell % columns) * wide, panel.y + Math.floor(cell / columns) * high];
    if (Math.min(wide, high) >= ROOMY) {
      const named = namesIn(wide - 6, high - 17); // above the value
      cells.forEach((element, cell) => {
        if (element < 0) return;
        const [x, y] = corner(cell);
        drawn.push(inside(element, named[element] ?? [], x, y, wide, high, data, panel, frame.dark));
      });
    } else if (at.has(orbit.identity)) {
      const [x, y] = corner(at.get(orbit.identity));
      drawn.push(...cross(x + wide / 2, y + high / 2, Math.min(4, wide / 2)));
    }
    if (panel.first && told(frame)) {
      const ends = { "text-anchor": "end" };
      const middle = (row) => panel.y + (row + 0.5) * high;
      names.rows.words.forEach((word, row) => drawn.push(label(panel.x - 5, middle(row), fitted(word, 110), ends)));
    }
    if (panel.first && names.rows.name) {
      const [x, y] = [round(panel.x - marginIn(frame).left + 8), round(panel.y + panel.height / 2)];
      drawn.push(label(x, y, names.rows.name, { fill: INK, transform: `rotate(-90 ${x} ${y})` }));
    }
    const end = panel.y + panel.height;
    const each = Math.ceil((longest + 4) / wide); // every second or third where all do not fit
    if (!crowded.columns && each <= (names.columns.several ? 1 : Math.max(columns / 2, 1))) {
      names.columns.words.forEach(
        (word, column) => column % each || drawn.push(label(panel.x + (column + 0.5) * wide, end + 10, word)),
      );
    }
    if (names.columns.name && panel.last) {
      drawn.push(label(panel.x + panel.width / 2, end + 24, names.columns.name, { fill: INK }));
    }
    return drawn;
  }

  /**
   * The lines of each tile's name in a room: one, or a word each, and all alike. None where a name does not fit, since a
   * cut one says nothing.
   */
  function namesIn(wide, high) {
    if (orbit.plane) return [];
    const fit = (rows) => 13 * rows.length <= high && rows.every((row) => textWidth(row) <= wide);
    const ways = [(name) => [name], (name) => name.split(" ")].map((way) => names.inside.map(way));
    return ways.find((lines) => lines.every(fit)) ?? [];
  }

  /** What a tile says: the letter as the element turns it, its words, its value. */
  function inside(element, name, x, y, wide, high, data, panel, dark) {
    const [drawn, title, value] = [node("g"), node("title"), node("tspan")];
    drawn.append(title);
    const lines = [...name, high >= 46 && wide >= 34 ? value : ""].filter(Boolean);
    const room = high - 13 * lines.length - 4;
    const picture = orientation(orbit, element, Math.min(room, wide - 4) * 0.88);
    const top = y + (picture ? high - 4 - 13 * (lines.length - 0.5) : (high - 13 * (lines.length - 1)) / 2);
    if (picture) {
      picture.setAttribute("transform", `translate(${round(x + wide / 2)} ${round(y + 2 + room / 2)})`);
      drawn.append(picture);
    }
    const texts = lines.map((_, k) => label(x + wide / 2, top + 13 * k, "", {}));
    texts.forEach((text, k) => text.append(lines[k]));
    drawn.append(...texts);
    written.push({ element, panel, title, value, texts, picture, wide });
    write(written.at(-1), data, dark);
    return drawn;
  }

  /** Write a tile's value, in ink that is read on its color; one that is too wide stands in the title alone. */
  function write({ element, panel, title, value, texts, picture, wide }, data, dark) {
    const number = valuesOf(data, panel)[panel.m * orbit.size + element];
    const ink = readableOn(colorOf(number, data.shades, dark, data.ramp));
    const words = data.write(number);
    title.textContent = `${orbit.names?.[element] ?? ""}: ${words}`;
    value.textContent = textWidth(words) <= wide - 2 ? words : "";
    for (const text of texts) text.setAttribute("fill", ink);
    picture?.setAttribute("stroke", ink);
  }

  const where = (element) => at.get(element) ?? 0;
  return panelGrid(orbit, {
    parts: [""],
    aspect: clamp(rows / columns, 0.3, 2),
    marginIn,
    begin: () => (written = []),
    refresh: (data, frame) => written.forEach((each) => write(each, data, frame.dark)),
    innerBottom: crowded.columns ? 0 : 14,
    paint,
    decorate,
    places: (element) => [
      [0, ((where(element) % columns) + 0.5) / columns, (Math.floor(where(element) / columns) + 0.5) / rows],
    ],
    mark(panel, x, y, look) {
      const [wide, high] = size(panel).map((side) => Math.max(side, 4)); // what is marked is seen
      return cellRim(x - wide / 2 + 1, y - high / 2 + 1, wide - 2, high - 2, look);
    },
    locate(_part, u, v) {
      const [row, column] = [clamp(Math.floor(v * rows), 0, rows - 1), clamp(Math.floor(u * columns), 0, columns - 1)];
      const element = cells[row * columns + column];
      return element < 0 ? null : { element };
    },
    step(element, key) {
      if (key === "Home") return orbit.identity;
      if (key === "End") return orbit.index[orbit.index.length - 1];
      if (!(key in WAYS)) return null;
      const [right, up, far] = WAYS[key];
      const next = where(element) + right - columns * (up + far);
      return next >= 0 && next < cells.length && cells[next] >= 0 ? cells[next] : element;
    },
  });
}
