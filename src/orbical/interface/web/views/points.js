// How atoms are drawn: a symbol, the usual color of the element, and a radius in ångström.
import { button, h, write } from "../core/dom.js";
import { fit, onAppearance, resolve } from "../draw/canvas.js";
import { significant } from "../draw/format.js";

/** Symbol, color and radius of elements by their number, as a scan states them. */
const USUAL = {};

/** Learn how atoms are drawn. */
export const learnAtoms = (table) => Object.assign(USUAL, table);

/** `{symbol, color, radius}` of an element; one that is drawn seldom has no symbol. */
export function atomOf(number) {
  const [symbol, color, radius] = USUAL[number] ?? ["", "#c05c9b", 1.3];
  return { symbol, color, radius };
}

/** Pairs of atoms near enough for a bond: closer than 1.2 times their radii together. */
export function bondsOf(points, numbers) {
  const bonds = [];
  for (let i = 0; i < points.length; i += 1) {
    for (let j = i + 1; j < points.length; j += 1) {
      const apart = Math.hypot(...points[i].map((value, axis) => value - points[j][axis]));
      if (apart < 1.2 * (atomOf(numbers[i]).radius + atomOf(numbers[j]).radius)) bonds.push([i, j]);
    }
  }
  return bonds;
}

/** How many atoms of each element, the usual ones by their symbols: "2 C, 6 H, 1 O". */
export function composition(numbers) {
  const counts = new Map();
  for (const number of numbers) {
    const name = atomOf(number).symbol || `Z=${number}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => `${count} ${name}`).join(", ");
}

/** @import { ViewContent } from "./index.js" */

export const HOME = { yaw: 30, pitch: 20 }; // from the front, a little from the right and from above
const STEP = 10; // degrees for an arrow key
const PER_PIXEL = 0.5; // degrees for a pixel of dragging
const AXES = ["x", "y", "z"];
const ROOM = 1.12; // what the view shows, in radii of the cloud

/** The look from a direction: rows across, up and towards the viewer; y is up. */
export function lookFrom({ yaw, pitch }) {
  const [a, b] = [(yaw * Math.PI) / 180, (pitch * Math.PI) / 180];
  const [ca, sa, cb, sb] = [Math.cos(a), Math.sin(a), Math.cos(b), Math.sin(b)];
  return [
    [ca, 0, -sa],
    [-sa * sb, cb, -ca * sb],
    [sa * cb, sb, ca * cb],
  ];
}

/** The direction after a drag by some pixels: the cloud follows the pointer, and never tips over. */
export function dragged({ yaw, pitch }, dx, dy) {
  const turned = (((yaw - dx * PER_PIXEL) % 360) + 360) % 360;
  return { yaw: turned, pitch: Math.min(90, Math.max(-90, pitch + dy * PER_PIXEL)) };
}

/** The points that count: all, or where the mask is not 0. Flat points get a height of 0. */
export function counted({ data, shape }, mask) {
  const d = shape[shape.length - 1];
  const points = [];
  for (let i = 0; i < data.length / d; i += 1) {
    if (mask && !mask.data[i]) continue;
    points.push([data[i * d], data[i * d + 1], d > 2 ? data[i * d + 2] : 0]);
  }
  return points;
}

/** The atomic numbers of the points that count; none where there are no atoms. */
export function atomsOf(numbers, mask) {
  if (!numbers) return [];
  return Array.from(numbers.data).filter((_, i) => (mask ? mask.data[i] : true));
}

/** How far the farthest point lies from the origin, about which the group turns. */
export function radiusOf(points) {
  const farthest = points.reduce((far, point) => Math.max(far, Math.hypot(...point)), 0);
  return farthest > 0 ? farthest : 1;
}

/** Places on a square of a size: [x, y, depth, point], depth from -1 (far) to 1 (near), far ones first. */
export function projected(points, look, size, radius) {
  const scale = size / 2 / ROOM / radius;
  const places = points.map((point, i) => {
    const [across, up, out] = look.map((row) => row[0] * point[0] + row[1] * point[1] + row[2] * point[2]);
    return [size / 2 + across * scale, size / 2 - up * scale, out / radius, i];
  });
  return places.sort((a, b) => a[2] - b[2]);
}

/** The twelve edges of a cell [3, 3] of which some directions repeat; none of a molecule. */
export function cellEdges(cell, pbc) {
  if (!cell || !pbc || !Array.from(pbc.data).some(Boolean)) return [];
  const vectors = [0, 1, 2].map((row) => Array.from(cell.data.slice(3 * row, 3 * row + 3), Number));
  if (!vectors.every((vector) => vector.some((value) => value !== 0))) return [];
  const corner = (bits) =>
    [0, 1, 2].map((axis) => vectors.reduce((sum, vector, row) => sum + ((bits >> row) & 1) * vector[axis], 0));
  const pairs = [];
  for (let bits = 0; bits < 8; bits += 1) {
    for (const step of [1, 2, 4]) if (!(bits & step)) pairs.push([corner(bits), corner(bits | step)]);
  }
  return pairs;
}

/** The field that holds positions: the one called pos, else the first [points, 2 or 3]. */
function positions(fields) {
  const flat = ({ shape }) => shape.length === 2 && (shape[1] === 2 || shape[1] === 3);
  return fields.pos ?? Object.values(fields).find(flat);
}

function axes(context, look, size, color) {
  const origin = [26, size - 26];
  context.strokeStyle = color;
  context.fillStyle = color;
  context.lineWidth = 1;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  AXES.forEach((name, axis) => {
    const [dx, dy] = [look[0][axis], -look[1][axis]];
    context.beginPath();
    context.moveTo(...origin);
    context.lineTo(origin[0] + 14 * dx, origin[1] + 14 * dy);
    context.stroke();
    context.fillText(name, origin[0] + 21 * dx, origin[1] + 21 * dy);
  });
}

/** Dots of one color. */
function drawCloud(context, places, size, color) {
  const dot = Math.min(Math.max(size / Math.sqrt(places.length + 1) / 4, 1.2), 5);
  context.fillStyle = color;
  for (const [x, y, depth] of places) {
    const side = dot * (1 + 0.35 * depth);
    context.globalAlpha = 0.62 + 0.38 * depth;
    context.fillRect(x - side / 2, y - side / 2, side, side);
  }
  context.globalAlpha = 1;
}

/** The radius of an atom on the screen. */
const discOf = (number, unit) => Math.max(0.45 * atomOf(number).radius * unit, 3);

/** Atoms as discs, bonds as lines that end at them; what is near covers what is far. */
function drawMolecule(context, places, numbers, bonds, unit, colors) {
  const drawn = new Map();
  for (const [x, y, , i] of places) {
    const disc = discOf(numbers[i], unit);
    context.lineWidth = Math.max(0.12 * unit, 1.5);
    context.strokeStyle = colors.bond;
    for (const [a, b] of bonds) {
      const far = (a === i && drawn.get(b)) || (b === i && drawn.get(a));
      if (!far) continue;
      const [dx, dy] = [x - far.x, y - far.y];
      const share = Math.min(far.disc / Math.max(Math.hypot(dx, dy), 1e-9), 1);
      context.beginPath();
      context.moveTo(far.x + share * dx, far.y + share * dy);
      context.lineTo(x, y);
      context.stroke();
    }
    drawn.set(i, { x, y, disc });
    context.beginPath();
    context.arc(x, y, disc, 0, 2 * Math.PI);
    context.fillStyle = atomOf(numbers[i]).color;
    context.fill();
    context.lineWidth = 1;
    context.strokeStyle = colors.edge;
    context.stroke();
  }
}

/** The atoms whose middle is seen, from far to near: no nearer one lies over it. */
export function uncovered(places, numbers, unit) {
  return places.filter(
    ([x, y], k) => !places.slice(k + 1).some(([a, b, , i]) => Math.hypot(a - x, b - y) < discOf(numbers[i], unit)),
  );
}

/** The symbols of atoms, above the arrows of forces, which begin in the middle of an atom. */
function drawSymbols(context, places, numbers, unit) {
  Object.assign(context, { textAlign: "center", textBaseline: "middle", lineWidth: 3, lineJoin: "round" });
  for (const [x, y, , i] of uncovered(places, numbers, unit)) {
    const { symbol, color } = atomOf(numbers[i]);
    const disc = discOf(numbers[i], unit);
    if (disc < 5) continue;
    context.font = `${Math.min(Math.max(disc, 8), 13)}px system-ui, sans-serif`;
    context.strokeStyle = color;
    context.strokeText(symbol, x, y);
    context.fillStyle = numbers[i] === 1 || numbers[i] === 16 ? "#1c1c1c" : "#ffffff";
    context.fillText(symbol, x, y);
  }
}

/** A crystal about the center of its cell: where it lies in space means nothing. */
export function aboutCenter(points, edges) {
  const corners = edges.flat();
  const center = [0, 1, 2].map((axis) => corners.reduce((sum, one) => sum + one[axis], 0) / corners.length);
  const moved = (point) => point.map((value, axis) => value - center[axis]);
  return { points: points.map(moved), edges: edges.map((ends) => ends.map(moved)) };
}

/** The edges of a cell as thin lines. */
function drawCell(context, edges, look, size, radius, color) {
  context.strokeStyle = color;
  context.lineWidth = 1;
  for (const ends of edges) {
    const [from, to] = ends.map((point) => projected([point], look, size, radius)[0]);
    context.beginPath();
    context.moveTo(from[0], from[1]);
    context.lineTo(to[0], to[1]);
    context.stroke();
  }
}

const ARROW = 0.4; // the longest, in radii of the view
const TIP = 0.5; // half the angle of its point

/** The length of the longest vector of all models. */
function longestOf(forces) {
  return Math.max(0, ...forces.flatMap(({ vectors }) => vectors.map((vector) => Math.hypot(...vector))));
}

/** Vectors at their points, all models on one scale; those that would be shorter than their point are left out. */
function drawVectors(context, origins, vectors, scale, place) {
  vectors.forEach((vector, i) => {
    const [from, to] = [origins[i], origins[i].map((value, axis) => value + scale * vector[axis])].map(place);
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    const [length, angle] = [Math.hypot(dx, dy), Math.atan2(dy, dx)];
    if (!(length > 3)) return;
    const barb = (turn) => [to[0] - 6 * Math.cos(angle + turn), to[1] - 6 * Math.sin(angle + turn)];
    context.beginPath();
    context.moveTo(from[0], from[1]);
    context.lineTo(to[0], to[1]);
    context.moveTo(...barb(TIP));
    context.lineTo(to[0], to[1]);
    context.lineTo(...barb(-TIP));
    context.stroke();
  });
}

/** The view: dragging or arrow keys walk around the cloud, which the group turns on its own. */
export function createView(el, state = /** @type {{ atoms?: Record<number, any> }} */ ({})) {
  learnAtoms(state.atoms ?? {});
  const canvas = h("canvas", { class: "cloud", role: "img", tabindex: "0", "aria-label": "point cloud" });
  const holder = h("div", { class: "pixels-holder" }, canvas);
  const about = h("span", {});
  const way = h("span", { class: "on-screen" }, " · drag to rotate the view");
  const note = h("p", { class: "view-note" }, about, way);
  const back = button("Front", () => turn(HOME), { class: "tool", title: "Reset to the front view" });
  el.append(holder, h("div", { class: "cloud-foot" }, note, back));

  const stop = new AbortController();
  const on = (name, listener) => canvas.addEventListener(name, listener, { signal: stop.signal });
  let camera = HOME;
  let points = [];
  let numbers = [];
  let bonds = [];
  let edges = [];
  /** @type {{ color: string, vectors: number[][] }[]} */
  let forces = [];
  let radius = 1;
  let held = null;

  function draw() {
    const size = Math.max(Math.min(holder.clientWidth, holder.clientHeight), 64);
    const context = fit(canvas, size, size);
    const look = lookFrom(camera);
    const places = projected(points, look, size, radius);
    drawCell(context, edges, look, size, radius, resolve(canvas, "var(--soft)"));
    const unit = size / 2 / ROOM / radius;
    const atoms = numbers.length === points.length && points.length > 0;
    if (atoms) {
      const colors = { bond: resolve(canvas, "var(--soft)"), edge: resolve(canvas, "var(--ink)") };
      drawMolecule(context, places, numbers, bonds, unit, colors);
    } else drawCloud(context, places, size, resolve(canvas, "var(--accent)"));
    const longest = longestOf(forces);
    const place = (point) => projected([point], look, size, radius)[0];
    forces.forEach(({ color, vectors }, m) => {
      context.strokeStyle = resolve(canvas, color);
      context.lineWidth = 2 + 2 * (forces.length - 1 - m); // where models agree, the first is seen around the next
      if (longest > 0) drawVectors(context, points, vectors, (ARROW * radius) / longest, place);
    });
    if (atoms) drawSymbols(context, places, numbers, unit);
    axes(context, look, size, resolve(canvas, "var(--soft)"));
  }

  function turn(wanted) {
    camera = wanted;
    draw();
  }

  on("pointerdown", (event) => {
    if (event.button !== 0) return;
    held = [event.clientX, event.clientY];
    canvas.setPointerCapture(event.pointerId);
    event.preventDefault();
    canvas.focus({ preventScroll: true });
  });
  on("pointermove", (event) => {
    if (!held) return;
    turn(dragged(camera, event.clientX - held[0], event.clientY - held[1]));
    held = [event.clientX, event.clientY];
  });
  const release = () => (held = null);
  on("pointerup", release);
  on("pointercancel", release);
  on("dblclick", () => turn(HOME));
  on("keydown", (event) => {
    const ways = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.key !== "Home" && !(event.key in ways)) return;
    event.preventDefault();
    event.stopPropagation(); // elsewhere the arrows move along the orbit
    const [across, up] = ways[event.key] ?? [0, 0];
    turn(event.key === "Home" ? HOME : dragged(camera, (across * STEP) / PER_PIXEL, (up * STEP) / PER_PIXEL));
  });
  onAppearance(draw, stop.signal);
  const resized = new ResizeObserver(draw);
  resized.observe(holder);

  function set(/** @type {ViewContent & { forces?: { color: string, vectors: number[][] }[] }} */ content) {
    const { fields, place } = content;
    forces = content.forces ?? [];
    const found = positions(fields);
    if (!found) return;
    points = counted(found, fields.mask);
    numbers = atomsOf(fields.numbers, fields.mask);
    bonds = bondsOf(numbers.length ? points : [], numbers);
    edges = cellEdges(fields.cell, fields.pbc);
    if (edges.length) ({ points, edges } = aboutCenter(points, edges));
    radius = radiusOf([...points, ...edges.flat()]);
    if (forces.length) radius *= 1 + ARROW / 2; // room for arrows that point outward
    draw();
    const what = numbers.length ? `${points.length} atoms (${composition(numbers)})` : `${points.length} points`;
    const words = `${what} at ${place.name}`;
    canvas.setAttribute("aria-label", `${words}. Drag or use the arrow keys to rotate the view.`);
    const longest = significant(longestOf(forces));
    write(about, forces.length ? `arrows: forces up to ${longest} eV/Å` : what);
    way.hidden = forces.length > 0;
  }

  function destroy() {
    stop.abort();
    resized.disconnect();
    el.replaceChildren();
  }

  return { set, destroy };
}
