/** Tiles in a table: which element stands where, and what rows, columns and tiles are called. */

const WIDEST = 12;

/** Wrap a long row, and blank (-1) the cells that only repeat an element to fill the table. */
export function tableOf(index, shape, coords = {}) {
  let columns = shape[shape.length - 1];
  if (index.length === columns && columns > WIDEST) columns = wrappedAt(index, coords);
  const rows = Math.ceil(index.length / columns);
  const cells = new Int32Array(rows * columns).fill(-1);
  const seen = new Set();
  index.forEach((element, i) => {
    if (!seen.has(element)) cells[i] = element;
    seen.add(element);
  });
  return { rows, columns, cells };
}

/** Where a long row is wrapped: where a coordinate changes, such as the factor of a product, or else into a square. */
function wrappedAt(index, coords) {
  const runs = Object.values(coords).map((values) => {
    const changes = (i) => values[index[i]] !== values[index[i - 1]];
    const run = index.findIndex((_, i) => i > 0 && changes(i));
    return index.every((_, i) => i === 0 || changes(i) === (i % run === 0)) ? run : 0;
  });
  const widest = Math.max(0, ...runs.filter((run) => run <= WIDEST));
  return widest > 1 ? widest : Math.ceil(Math.sqrt(index.length));
}

/** Name rows and columns by the coordinates that they share, and elements by the others. */
export function tableNames({ rows, columns, cells }, coords) {
  const [byRow, byColumn] = [{}, {}];
  /** @type {string[][]} */
  const inside = [];
  const value = (values, row, column) => values[Math.max(cells[row * columns + column], 0)];
  for (const [name, values] of Object.entries(coords)) {
    const places = [...Array(rows).keys()].flatMap((row) => [...Array(columns).keys()].map((column) => [row, column]));
    const alongRow = places.every(([row, column]) => value(values, row, column) === value(values, row, 0));
    const alongColumn = places.every(([row, column]) => value(values, row, column) === value(values, 0, column));
    if (rows > 1 && alongRow) byRow[name] = [...Array(rows).keys()].map((row) => value(values, row, 0));
    else if (columns > 1 && alongColumn)
      byColumn[name] = [...Array(columns).keys()].map((column) => value(values, 0, column));
    else values.forEach((each, element) => ((inside[element] ??= []), inside[element].push(word(each, name))));
  }
  return {
    rows: along(byRow, rows),
    columns: along(byColumn, columns),
    inside: inside.map((words) => words.join(" ")),
  };
}

/** One coordinate as its values and its name along the axis; several with their names, of which none tells the next. */
function along(named, count) {
  const names = Object.keys(named);
  if (names.length === 1) {
    const [name] = names; // degrees say by themselves that they are angles, and directions times
    return {
      name: name === "angle" || name === "time" ? "" : name,
      words: named[name].map((each) => word(each, name)),
      several: false,
    };
  }
  const words = Array.from({ length: count }, (_, place) =>
    names.map((name) => spelled(named[name][place], name)).join(", "),
  );
  return { name: "", words, several: names.length > 1 };
}

/** A word by itself, a number with its name. */
function spelled(value, name) {
  return typeof value === "string" || name === "time" ? word(value, name) : `${name} ${word(value, name)}`;
}

function word(value, name) {
  if (typeof value !== "number") return String(value);
  if (name === "time") return value > 0 ? "forward" : "reversed";
  const short = String(Number(value.toPrecision(4))).replace("-", "−");
  return name === "angle" ? `${short}°` : short;
}

/** How a grid of panels fills a box best: columns, and the width and height of one panel; `most` side by side. */
export function gridFor(count, parts, width, height, aspect, gaps, most = count) {
  /** @type {any} */
  let best = null;
  for (let across = 1; across <= most; across += 1) {
    const [columns, down] = [across * parts, Math.ceil(count / across)];
    const room = (width - (columns - 1) * gaps.x - (across - 1) * (gaps.model ?? 0)) / columns;
    const tall = (height - (down - 1) * gaps.y) / down;
    const wide = Math.max(Math.min(room, tall / aspect), 1); // gaps alone may fill a small box
    if (!best || wide > best.width + 1e-9) best = { across, columns, down, width: wide, height: wide * aspect };
  }
  return best;
}
