/** Where a readout stands so that it stays inside of its plot and off the pointer. */
import { write } from "../core/dom.js";
import { shortened } from "../draw/format.js";
import { clamp } from "../draw/scales.js";

/** The corner of a box of `size` beside a place: right, left, below or above of it, within `room`. */
export function besidePointer(
  /** @type {number[]} */ [x, y],
  /** @type {number[]} */ [wide, high],
  /** @type {number[]} */ [width, height],
  gap = 14,
) {
  const level = clamp(y + gap, 0, Math.max(height - high, 0));
  if (x + gap + wide <= width) return [x + gap, level];
  if (x - gap - wide >= 0) return [x - gap - wide, level];
  const left = clamp(x - wide / 2, 0, Math.max(width - wide, 0));
  if (y + gap + high <= height) return [left, y + gap];
  return [left, Math.max(y - gap - high, 0)];
}

const LONGEST = 24;

/** Make the readout of a plot inside its root element. */
export function createTooltip(root) {
  const box = document.createElement("div");
  box.className = "plot-tooltip";
  box.hidden = true;
  Object.assign(box.style, {
    position: "absolute",
    left: "0",
    top: "0",
    zIndex: "5",
    pointerEvents: "none",
    maxWidth: "94%",
    padding: "4px 8px",
    borderRadius: "4px",
    font: "12px var(--font, system-ui, sans-serif)",
    lineHeight: "1.4",
    color: "var(--ink, #222)",
    background: "var(--panel, #fff)",
    border: "1px solid var(--line, #d9d9d9)",
    boxShadow: "0 1px 6px rgba(0, 0, 0, 0.25)",
  });
  const head = document.createElement("div");
  head.style.fontWeight = "600";
  const body = document.createElement("div");
  Object.assign(body.style, {
    display: "grid",
    gridTemplateColumns: "auto minmax(0, auto) 1fr",
    columnGap: "6px",
    alignItems: "center",
  });
  box.append(head, body);
  root.append(box);
  let shown = "";
  let size = [0, 0];

  return {
    /** Show a heading and rows `{ color, name, value }` near a place of the root. */
    show(x, y, heading, rows, width, height) {
      const words = heading + rows.map((row) => shortened(row.name, LONGEST) + row.value).join();
      write(head, heading);
      fill(body, rows);
      box.hidden = false;
      // Asking for the size costs a layout: only when the words have changed in length.
      if (words.length !== shown.length || !size[0]) size = [box.offsetWidth, box.offsetHeight];
      shown = words;
      const [left, top] = besidePointer([x, y], size, [width, height]);
      box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    },
    hide() {
      box.hidden = true;
    },
  };
}

/** Show what `read(x, y)` says of the place under the pointer, `{ head, rows, marks }`; nothing where it says nothing. */
export function attachReadout(frame, read) {
  const tip = createTooltip(frame.root);
  const leave = () => (tip.hide(), frame.front.replaceChildren());
  frame.on(frame.root, "pointermove", (event) => {
    const { left, top } = frame.root.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const found = read(x, y);
    if (!found) return leave();
    frame.front.replaceChildren(...(found.marks ?? []));
    return tip.show(x, y, found.head, found.rows, frame.width, frame.height);
  });
  frame.on(frame.root, "pointerleave", leave);
}

/** Fill the rows, using those that are there again. */
function fill(body, rows) {
  while (body.children.length > 3 * rows.length) body.lastChild.remove();
  while (body.children.length < 3 * rows.length) body.append(document.createElement("span"));
  rows.forEach((row, i) => {
    const [swatch, name, value] = [0, 1, 2].map((k) => body.children[3 * i + k]);
    Object.assign(swatch.style, {
      width: row.color ? "10px" : "0",
      height: "10px",
      borderRadius: "2px",
      background: row.color ?? "none",
    });
    write(name, shortened(row.name, LONGEST));
    write(value, row.value);
    Object.assign(value.style, { textAlign: "right", whiteSpace: "nowrap", fontVariantNumeric: "tabular-nums" });
  });
}
