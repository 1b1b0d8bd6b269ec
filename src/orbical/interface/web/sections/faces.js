// A section with several faces: a switch in its header, and one of them shown at a time.
import { fill, h, modelLabel, show, write } from "../core/dom.js";
import { MANY } from "../draw/colors.js";
import { short } from "../draw/format.js";
import { upTo } from "../draw/scales.js";
import { createSwitch } from "./frame.js";

/**
 * Make the switch of a selection field; `faces` are `[value, words, title, create]`, where
 * `create(el, app, says)` gives `{ focus, destroy }` and may say a state and a note of its own.
 */
export function createFaces(frame, app, field, label, faces) {
  const named = faces.map((face) => face.slice(0, 3));
  const choice = createSwitch(label, named, (value) => app.select({ [field]: value }));
  if (faces.length > 1) frame.controls.prepend(choice.el);
  const made = new Map();

  /** What a face says about itself; it is shown while the face is. */
  function sayings(name) {
    const last = { state: ["loading"], note: "" };
    const shown = () => app.store.get()[field] === name;
    return {
      state: (...given) => ((last.state = given), shown() && frame.state(...given)),
      note: (text) => ((last.note = text), shown() && frame.note(text)),
      again: () => (frame.state(...last.state), frame.note(last.state[0] === "ready" ? last.note : "")),
    };
  }

  /** A face is made when it is first shown. */
  function face(name) {
    if (!made.has(name)) {
      const holder = frame.body.appendChild(h("div", { class: `face ${name}-face` }));
      const says = sayings(name);
      const create = faces.find(([value]) => value === name)[3];
      made.set(name, { holder, says, ...create(holder, app, says) });
    }
    return made.get(name);
  }

  function turn() {
    const name = app.store.get()[field];
    choice.set(name);
    face(name).says.again();
    for (const [other, { holder }] of made) show(holder, other === name);
  }

  const stop = app.store.subscribe([field], turn);
  turn();
  return {
    now: () => face(app.store.get()[field]),
    destroy: () => (stop(), made.forEach((each) => each.destroy())),
  };
}

/** A switch between an axis that ends at the largest value and a whole one; away where these are the same. */
export function createScale(app, redraw) {
  const choice = createSwitch(
    "End of the axis",
    [
      ["fit", "fit"],
      ["full", "full"],
    ],
    (scale) => app.select({ scale }),
  );
  const stop = app.store.subscribe(["scale"], redraw);

  /** The ends of the axis for some values. */
  function of(values, range) {
    const fitting = upTo(values, range);
    const { scale } = app.store.get();
    show(choice.el, fitting[1] < range[1]);
    choice.set(scale, { fit: `up to ${short(Number(fitting[1].toPrecision(2)))}`, full: `up to ${short(range[1])}` });
    return scale === "fit" ? fitting : range;
  }

  return { el: choice.el, of, destroy: stop };
}

/** Make the row; `set(models, values, { place, format })` writes it without new elements. */
export function createLegend() {
  const place = h("span", { class: "place" });
  const items = h("span", { class: "items" });
  const el = h("div", { class: "legend" }, place, items);
  let names = "";
  let cells = [];

  function set(models, values, { where, format }) {
    const key = models.map((model) => model.name + model.color).join("|");
    if (key !== names) {
      names = key;
      cells = models.map((model) => {
        const number = h("b", {});
        return { number, el: h("span", { class: "item" }, ...modelLabel(model), number) };
      });
      fill(items, cells);
      el.tabIndex = models.length > MANY ? 0 : -1; // it scrolls
    }
    write(place, where);
    cells.forEach((cell, i) => write(cell.number, format(values ? values[i] : NaN)));
  }

  return { el, set };
}
