// A guided first minute: a few things to do, each at its place on the page. Only the demo has it.

import { button, h, show, write } from "../core/dom.js";

const SEEN = "orbical-guide-seen";

/**
 * The steps: where, what to do, and the fields whose change says that it was done.
 * @type {[string, string, string[]][]}
 */
const STEPS = [
  [
    "individual",
    "Drag the handle along the orbit. The input moves, and the models answer as you drag.",
    ["element", "position"],
  ],
  ["embedding", "Click a point. Each is one sample; near ones get similar answers along the orbit.", ["sample"]],
  ["filters", "Choose one or two classes. All plots on the left then show only these.", ["filter"]],
  ["aggregate", "Look for dents. This is the mean over the samples; where it is even, the orbit does not matter.", []],
  [
    "menus",
    "Compare with the consensus. It needs no labels: it shows where a model contradicts itself.",
    ["reference"],
  ],
  [
    "embedding",
    "Press “lasso” and circle some points: they become a subset. Press ? for help and this guide again.",
    ["subset"],
  ],
];

/** Whether the guide was seen or skipped in this browser; without storage it was not. */
function seen(now) {
  try {
    if (now) localStorage.setItem(SEEN, "1");
    return localStorage.getItem(SEEN) === "1";
  } catch {
    return false;
  }
}

/** The guide as a card in a corner; it begins by itself the first time. */
export function createGuide(root, app) {
  const steps = STEPS.filter(([place]) => place !== "filters" || app.state.classes.length > 1);
  const count = h("p", { class: "step" });
  const text = h("p", { role: "status" });
  const next = button("Next", () => go(at + 1), { class: "tool primary" });
  const skip = button("Skip", close, { class: "tool" });
  const card = h("section", { class: "guide", "aria-label": "A first minute", hidden: true }, count, text);
  card.append(h("div", { class: "buttons" }, skip, next));
  root.append(card);
  let at = -1;

  const target = () => root.querySelector(`.${steps[at]?.[0] ?? "none"}`);

  function go(step) {
    target()?.classList.remove("guided");
    at = step;
    if (at >= steps.length) return close();
    show(card, true);
    write(count, `A first minute · step ${at + 1} of ${steps.length}`);
    write(text, steps[at][1]);
    write(next, at === steps.length - 1 ? "Done" : "Next");
    show(skip, at < steps.length - 1);
    return target()?.classList.add("guided");
  }

  function close() {
    target()?.classList.remove("guided");
    at = -1;
    show(card, false);
    seen(true);
  }

  /** Go on once the reader has done what a step asks for. */
  function follow(_, { changed, done, from }) {
    if (at < 0 || !done || from !== "user") return;
    if (steps[at][2].some((field) => touched.has(field) || changed.includes(field))) go(at + 1);
    touched.clear();
  }

  const touched = new Set(); // by a drag that is not finished
  const fields = [...new Set(STEPS.flatMap(([, , some]) => some))];
  const stops = [
    app.store.subscribe(fields, (_, { changed }) => changed.forEach((field) => touched.add(field))),
    app.store.subscribe(["done"], follow),
  ];
  if (!seen(false)) go(0);
  return { begin: () => go(0), destroy: () => (stops.forEach((stop) => stop()), close(), card.remove()) };
}
