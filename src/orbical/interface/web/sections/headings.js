// The headings of the two halves: how many samples on the left, which one on the right.

import { button, fill, h, write } from "../core/dom.js";
import { createSubsetMenu } from "./subset_menu.js";
import { createTags } from "./tags.js";
import { className, counted, fact, sentence, singular, whole } from "../core/text.js";

const [LEAST, USUAL, MOST] = [40, 66, 80]; // percent of the width for the left half

/** The bar between the halves: drag it, or press the arrows, to give one of them more room. */
function createDivider(main) {
  const bar = h("div", {
    class: "divider",
    role: "separator",
    tabindex: "0",
    "aria-orientation": "vertical",
    "aria-label": "Width of the left half",
    "aria-valuemin": LEAST,
    "aria-valuemax": MOST,
    title: "Drag to resize; double-click to reset",
    "data-transient": "",
    onpointerdown: (event) => bar.setPointerCapture(event.pointerId),
    onpointermove: (event) => bar.hasPointerCapture(event.pointerId) && set(shareAt(event.clientX)),
    ondblclick: () => set(USUAL),
    onkeydown: ({ key }) =>
      set(Number(bar.getAttribute("aria-valuenow")) + ({ ArrowLeft: -2, ArrowRight: 2 }[key] ?? 0)),
  });
  const shareAt = (x) => (100 * (x - main.getBoundingClientRect().left)) / main.clientWidth;

  function set(share) {
    const now = Math.round(Math.min(MOST, Math.max(LEAST, share)));
    main.style.setProperty("--left", `${now}fr`);
    main.style.setProperty("--right", `${100 - now}fr`);
    bar.setAttribute("aria-valuenow", String(now));
  }

  set(parseFloat(main.style.getPropertyValue("--left")) || USUAL);
  return bar;
}

/** Left: the subset, with a chip that clears it. Right: the sample, with a step to its neighbors. */
export function createSection(shell, app) {
  const one = singular(app.noun);
  const all = h("h2", {}, `All ${app.noun}`);
  const chip = button("", () => app.select({ subset: "", filter: [] }), { class: "chip", hidden: true });
  const help = app.state.report?.note || "Drag along the orbit · click a point · lasso a subset";
  const warned = app.state.warnings.map((text) => `${sentence(text)}.`);
  const hint = h("p", { class: "hint" }, [...warned, help].join(" "));
  const menu = createSubsetMenu(app);
  shell.overview.append(h("div", { class: "half" }, all, chip, menu.el, hint));

  const title = h("h2", {});
  const label = h("p", {});
  const before = button("‹", () => app.step(-1), {
    class: "tool icon",
    title: `Previous ${one} in the list  [`,
    "aria-label": `Previous ${one} in the list`,
  });
  const after = button("›", () => app.step(1), {
    class: "tool icon",
    title: `Next ${one} in the list  ]`,
    "aria-label": `Next ${one} in the list`,
  });
  const tags = app.state.report ? null : createTags(app);
  shell.detail.append(h("div", { class: "half" }, title, label, tags, h("span", { class: "pair" }, before, after)));
  shell.detail.append(createDivider(shell.detail.parentElement));

  let mask = null;
  let counts = null;
  let answered = null;

  function count(answer) {
    const total = app.state.samples;
    mask = answer.arrays?.mask?.data ?? null;
    sample(answered);
    const some = !answer.error && answer.count !== total;
    chip.hidden = !some;
    write(all, some ? "Subset" : total === 1 ? `One ${one}` : `All ${whole(total)} ${app.noun}`);
    if (!some) return;
    const name = app.names.of(app.store.get().subset);
    const words = [name, counted(answer.count, total, app.noun)].filter(Boolean).join(" · ");
    fill(chip, words, h("span", { class: "clear" }, " · clear"));
    chip.title = "The aggregate, the list and the calibration show this subset. Click to clear it.";
  }

  /** The sample stays selected when the subset changes; whether it is part of it is said. */
  function sample(answer) {
    answered = answer;
    write(title, `${sentence(one)} ${whole(app.number(app.store.get().sample))}`);
    const known = answer?.label !== null && answer?.label !== undefined && app.state.classes.length;
    const name = app.called(app.store.get().sample) || answer?.name || "";
    const facts = Object.entries(answer?.facts ?? {}).map(([title, value]) => `${title} ${fact(value)}`);
    label.title = facts.join(" · ");
    const outside = mask && !mask[app.store.get().sample] ? "not in the subset" : "";
    write(
      label,
      [name, known ? `label ${className(app.state, answer.label)}` : "", ...facts, outside].filter(Boolean).join(" · "),
    );
  }

  const stops = [
    app.on("subset", (answer) => count((counts = answer))),
    app.names.on(() => counts && count(counts)),
    app.on("sample", sample),
    app.store.subscribe(["sample"], () => sample(null)),
  ];
  sample(null);
  /** Nobody knows the set that a link names. */
  function lost() {
    const where = app.state.report ? "in this report" : "known here";
    write(hint, `The subset of this link is not ${where}; all ${app.noun} are shown.`);
    app.announce(hint.textContent);
  }

  return { lost, tag: tags?.open, destroy: () => (stops.forEach((stop) => stop()), menu.destroy(), tags?.destroy()) };
}
