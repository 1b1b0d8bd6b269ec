// One sample in the list or in the grid: its picture, its name and its number.
import { clauseOf, withClause } from "../core/clauses.js";
import { button, fill, h, show, uid, write } from "../core/dom.js";
import { createListPages, itemsInSight, scrollTo, wholeHeight } from "../core/list_pages.js";
import { className, counted } from "../core/text.js";
import { paint } from "../core/thumbnails.js";
import { fixed, formatter, sharedEnds, significant } from "../draw/format.js";
import { fittedMiddle } from "../draw/svg.js";
import { createSelect, createSwitch } from "./frame.js";
import { hints } from "./help.js";

/** The name, the class and the number of a sample, as far as they are known. */
export function wordsOf(app, sample, found) {
  const name = app.called(sample) || found?.name || "";
  const label = found?.label ?? app.state.arrays.label?.data[sample] ?? null;
  const kind = label === null || !app.state.classes.length ? "" : className(app.state, label);
  return { name, kind, number: `#${app.number(sample)}` };
}

const labelOf = ({ name, kind, number }) => name || kind || number;

/** Make an item; `fill(found, value)` once its picture is known. */
export function createItem(app, { sample, index, total, layout, onclick }) {
  const canvas = h("canvas", { class: "thumb", "aria-hidden": "true", width: 1, height: 1 });
  const label = h("span", { class: "row-label" });
  const kind = h("span", { class: "row-kind" });
  const value = h("span", { class: "row-value" });
  const el = h(
    "div",
    {
      class: layout === "grid" ? "cell" : "row",
      role: "option",
      id: uid("row"),
      "aria-selected": "false",
      "aria-setsize": String(total),
      "aria-posinset": String(index + 1),
      onclick,
    },
    canvas,
    h("span", { class: "row-words" }, label, kind, value),
  );
  let painted = false;

  function fill(found, text, fit) {
    const words = wordsOf(app, sample, found);
    const first = labelOf(words);
    write(label, fit(first, found?.picture));
    write(kind, words.name ? words.kind : "");
    write(value, text);
    el.title = [words.name, words.kind, words.number, text].filter(Boolean).join(" · ");
    el.setAttribute(
      "aria-label",
      `sample ${app.number(sample)}, ${[first, kind.textContent, text].filter(Boolean).join(", ")}`,
    );
    if (!found || painted) return;
    painted = true;
    canvas.hidden = !found.picture;
    if (found.picture) paint(canvas, found.picture);
  }

  return { el, fill, sample };
}

const ROW = 42;
const [CELL, LARGE] = [48, 112]; // the least width of a cell of the grid, and on the stage
const CAPTION = 16;
const BESIDE = 15; // the margins of a row
const PICTURE = 34; // its picture, where it has one
const LETTERS = { list: [12, 600], grid: [10.5, 400] }; // size and weight of a name, as in the style sheet
const TYPING_MS = 200;
const OTHER_END = { worst: "best", best: "worst" };

/** The panel beside the embedding. */
export function createSection(el, app) {
  const { state, store } = app;
  const numeric = state.columns.filter(({ kind }) => kind === "number");
  const order = createSelect("Sort", (value) => app.select({ order: value }), { quiet: true, title: hints.list });
  const flip = button("", () => app.select({ order: flipped() }), { class: "tool icon flip" });
  const layout = createSwitch(
    "Show samples as",
    [
      ["list", "list", "One sample a line, with its number"],
      ["grid", "grid", "Pictures side by side"],
    ],
    (value) => app.select({ listing: value }),
  );
  const search = h("input", {
    type: "search",
    class: "search",
    placeholder: "Search",
    title: "Search for a name, a class or a number such as #12",
    "aria-label": "Search for a name, a class or a number",
    oninput: () => typed(),
  });
  const count = h("span", {});
  const what = h("span", { class: "value-title" });
  const box = h("div", {
    class: "rows",
    role: "listbox",
    tabindex: "0",
    "aria-label": "Sorted samples",
    title: hints.list,
  });
  const space = h("div", { class: "rows-space", role: "presentation" });
  const view = h("div", { class: "rows-view", role: "presentation" });
  const nothing = h("p", { class: "quiet-text", hidden: true });
  space.append(view);
  box.append(space);
  el.append(
    h(
      "div",
      { class: "list" },
      h("div", { class: "list-tools" }, search, layout.el),
      h("div", { class: "list-tools" }, order.el, flip),
      h("div", { class: "list-heading" }, count, what),
      box,
      nothing,
    ),
  );
  let items = new Map();
  let drawn = "";
  let waiting = null; // a place that keys went to before its page came
  let timer = null;
  let began = true; // until the reader does something, the list shows where the selected sample is
  const pages = createListPages(app, (first) => (first ? renew() : draw()));

  const flipped = () => {
    const now = store.get().order;
    return OTHER_END[now] ?? (now.startsWith("-") ? now.slice(1) : `-${now}`);
  };

  /** The subset follows the search, a moment after the last letter. */
  function typed() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const clause = search.value.trim() ? { values: [search.value.trim()] } : null;
      app.select({ filter: withClause(store.get().filter, { column: "search" }, clause) });
    }, TYPING_MS);
  }

  function shape() {
    const width = box.clientWidth || 140;
    const { listing, stage } = store.get();
    const grid = listing === "grid";
    const perLine = grid ? Math.max(2, Math.floor(width / (stage ? LARGE : CELL))) : 1;
    const lineHeight = grid ? Math.floor(width / perLine) + CAPTION : ROW;
    return {
      total: pages.about().total,
      perLine,
      lineHeight,
      scrollTop: box.scrollTop,
      height: box.clientHeight || 300,
    };
  }

  /** How the numbers are written: by their unit, or by their first digits. */
  function writer() {
    const { unit } = pages.about();
    const metric = app.sampleMetric();
    const now = store.get().order;
    if (now === "variable") return (value) => (Number.isFinite(value) ? significant(value, 2) : "failed");
    if (["worst", "best", "variable"].includes(now)) {
      const known = Array.from({ length: Math.min(200, pages.about().total) }, (_, i) => pages.at(i)?.value ?? 0);
      const most = Math.max(...known.map(Math.abs).filter(Number.isFinite), 0);
      const write = formatter(unit, [metric.low ?? 0, metric.high ?? (most || 1)]);
      return (value) => (Number.isFinite(value) ? write(value) : "failed"); // what is unfinished is not listed
    }
    return (value) => {
      if (value === Infinity) return "never";
      if (unit === "share") return fixed(value, 3);
      return significant(value) + (Number.isFinite(value) && ["°", "px"].includes(unit) ? unit : "");
    };
  }

  /** A new order is shown from its top. */
  function renew() {
    items = new Map();
    drawn = "";
    fill(view);
    box.scrollTop = 0;
    const { error, total, title } = pages.about();
    show(nothing, Boolean(error) || !total);
    show(box, nothing.hidden);
    const sought = clauseOf(store.get().filter, "search")?.values?.[0];
    write(nothing, error || (sought ? `No ${app.noun} match “${sought}”.` : app.nothing()));
    write(count, counted(total, state.samples, app.noun));
    const [quantity, of] = title.split(", ");
    const short = { mean: "mean", variance: "variance" }[of?.split(" ")[0]];
    write(what, short ? `${short} of the ${app.shortTitle(app.sampleMetric())}` : quantity);
    what.title = title;
    draw();
    mark(began);
  }

  function draw() {
    const now = shape();
    const sight = itemsInSight(now);
    space.style.height = `${wholeHeight(now.total, now.perLine, now.lineHeight)}px`;
    view.style.transform = `translateY(${sight.offset}px)`;
    view.style.gridTemplateColumns = `repeat(${now.perLine}, minmax(0, 1fr))`;
    view.style.gridAutoRows = `${now.lineHeight}px`;
    const grid = store.get().listing === "grid";
    box.classList.toggle("grid", grid);
    const held = Array.from({ length: sight.last - sight.first }, (_, i) => pages.at(sight.first + i));
    const key = `${grid} ${sight.first} ${held.map((one) => one?.sample ?? "").join()}`;
    if (key !== drawn) {
      drawn = key;
      const kept = items;
      items = new Map();
      const nodes = held.map((one, i) => {
        if (!one) return h("div", { class: "row-empty", role: "presentation" });
        const name = `${grid} ${one.sample}`;
        const made = kept.get(name) ?? make(one, sight.first + i, now.total, grid ? "grid" : "list");
        items.set(name, made);
        return made.el;
      });
      fill(view, nodes);
      mark(false);
    }
    const format = writer();
    const width = (picture) => box.clientWidth / now.perLine - (grid ? 0 : BESIDE + (picture ? PICTURE : 0));
    const known = held.flatMap((one) => (one ? [{ ...one, found: app.thumbnails.get(one.sample) }] : []));
    const shared = sharedEnds(known.map(({ sample, found }) => labelOf(wordsOf(app, sample, found))));
    const [size, weight] = LETTERS[grid ? "grid" : "list"];
    const fit = (name, picture) => fittedMiddle(name, width(picture), size, weight, shared);
    for (const { sample, value, found } of known) items.get(`${grid} ${sample}`)?.fill(found, format(value), fit);
    app.thumbnails.want(known.flatMap(({ sample, found }) => (found ? [] : [sample])));
    pages.want(sight.first, Math.max(sight.first, sight.last - 1));
    if (waiting !== null && pages.at(waiting)) go(waiting);
  }

  function make({ sample }, index, total, kind) {
    return createItem(app, { sample, index, total, layout: kind, onclick: () => app.select({ sample }) });
  }

  function mark(scroll = true) {
    const { sample } = store.get();
    let chosen = null;
    for (const one of items.values()) {
      const on = one.sample === sample;
      one.el.setAttribute("aria-selected", String(on));
      if (on) chosen = one.el;
    }
    if (chosen) box.setAttribute("aria-activedescendant", chosen.id);
    else box.removeAttribute("aria-activedescendant");
    if (scroll) reveal(pages.indexOf(sample));
  }

  /** Scroll the list alone, never the page. */
  function reveal(index) {
    const top = index < 0 ? null : scrollTo(index, shape());
    if (top === null) return;
    box.scrollTop = top;
    draw();
  }

  /** Select what is at a place; its page may have to come first. */
  function go(index) {
    const found = pages.at(index);
    waiting = found ? null : index;
    if (found) return app.select({ sample: found.sample });
    reveal(index);
    return pages.want(index, index);
  }

  function step(by) {
    const { total } = pages.about();
    if (!total) return;
    const from = waiting ?? pages.indexOf(store.get().sample);
    const start = from < 0 && by < 0 ? 0 : from; // what is not in the list stands before it
    go(Math.min(Math.max(0, start + by), total - 1));
  }

  function menus() {
    const now = store.get();
    const name = now.order.replace(/^-/, "");
    const falling = now.order.startsWith("-");
    order.set(
      [
        ["worst", "worst first"],
        ["best", "best first"],
        ["variable", "most variable"],
        ...numeric.map((column) => [falling && column.name === name ? now.order : column.name, column.title]),
      ],
      now.order,
    );
    flip.disabled = now.order === "variable";
    const upward = OTHER_END[now.order] ? now.order === "best" : !falling;
    write(flip, upward ? "↑" : "↓");
    const words = OTHER_END[now.order] ? `${OTHER_END[now.order]} first` : falling ? "smallest first" : "largest first";
    flip.title = `Sort the other way: ${words}`;
    flip.setAttribute("aria-label", flip.title);
    layout.set(now.listing);
    if (document.activeElement !== search) search.value = clauseOf(now.filter, "search")?.values?.[0] ?? "";
  }

  box.addEventListener("scroll", draw, { passive: true });
  box.addEventListener("keydown", (event) => {
    const { perLine, total, height, lineHeight } = shape();
    const sight = Math.max(1, Math.floor(height / lineHeight)) * perLine;
    const steps = { ArrowDown: perLine, ArrowUp: -perLine, PageDown: sight, PageUp: -sight, Home: -total, End: total };
    const aside = perLine > 1 ? { ArrowRight: 1, ArrowLeft: -1 } : {};
    const by = { ...steps, ...aside }[event.key];
    if (!by) return;
    event.preventDefault();
    step(by);
  });
  const touched = new AbortController();
  for (const kind of ["pointerdown", "keydown", "wheel"])
    document.addEventListener(kind, () => (began = false), { passive: true, signal: touched.signal });
  const sized = new ResizeObserver(() => draw());
  sized.observe(box);
  app.listed(step);
  const stops = [
    app.thumbnails.on(draw),
    store.subscribe(["sample"], () => mark()),
    store.subscribe(["listing"], () => (menus(), renew())),
    store.subscribe(["order", "filter"], menus),
    store.subscribe(["metric", "reference", "models"], () => ((items = new Map()), (drawn = ""))),
    () => touched.abort(),
    () => sized.disconnect(),
    () => clearTimeout(timer),
    pages.destroy,
  ];
  menus();
  return { focus: () => box.focus(), destroy: () => stops.forEach((stop) => stop()) };
}
