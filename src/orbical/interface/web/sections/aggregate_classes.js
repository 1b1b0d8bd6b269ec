// The metric along the orbit for each class, side by side: a small plot each, and a click that selects it.

import { button, fill, h, write } from "../core/dom.js";
import { clauseOf, withClause } from "../core/clauses.js";
import { groupColumns } from "../core/selection_rules.js";
import { whole } from "../core/text.js";
import { modelInk } from "../draw/colors.js";
import { precise, shortened } from "../draw/format.js";
import { gridFor } from "../draw/tile_table.js";
import { createGlyph } from "../plots/glyph.js";
import { createSelect, drawable } from "./frame.js";
import { createLegend } from "./faces.js";

const [SIZE, MORE] = [76, 24];
const [AROUND, BELOW, GAP] = [10, 48, 6]; // of a plot: its frame, name and numbers, and the next one

/** The side of as many plots as fill a box without scrolling, or the least that can be read. */
export function sideOf(count, width, height) {
  const fitting = gridFor(count, 1, width - AROUND, height - BELOW, 1, { x: GAP + AROUND, y: GAP + BELOW });
  return Math.max(SIZE, Math.floor(fitting.width));
}

/** The groups of a column of categories, by default the classes. */
export function createClasses(el, app, frame) {
  const columns = groupColumns(app.state);
  const by = createSelect("by", (value) => app.select({ by: value }), { quiet: true });
  const grid = h("div", { class: "groups", role: "group", "aria-label": "Groups of samples" });
  const more = button("", () => ((app.mostGroups += MORE), app.request("classes")), { class: "tool", hidden: true });
  const legend = createLegend();
  const foot = h("div", { class: "groups-foot" }, columns.length > 1 ? by.el : null, more);
  el.append(grid, legend.el, foot);
  let answer = null;
  let cells = [];
  let made = "";

  function cell(group) {
    const glyph = createGlyph(app.group, SIZE);
    const numbers = h("span", { class: "group-values" });
    const name = h("b", { title: group.name }, shortened(group.name, 14));
    const face = [name, glyph.element, numbers];
    const whole = button(face, () => choose(group.key), { class: "small-multiple", "data-key": group.key });
    return { group, glyph, numbers, el: whole };
  }

  /** Select a group, or all again where it is the one that is selected. */
  function choose(key) {
    const { filter } = app.store.get();
    const now = clauseOf(filter, answer.column)?.values ?? [];
    const clause = now.length === 1 && now[0] === key ? null : { values: [key] };
    app.select({ filter: withClause(filter, { column: answer.column }, clause) });
  }

  function draw() {
    if (!drawable(frame, answer, !answer?.total && app.nothing())) return;
    const metric = app.metricNamed(answer.metric);
    const many = answer.total > 12 ? ", worst first" : "";
    frame.note(`${metric.per_sample ? "mean" : metric.title}, ${whole(answer.total)} groups${many}`);
    const wanted = JSON.stringify([answer.column, answer.groups]);
    if (wanted !== made) {
      made = wanted;
      const focused = grid.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
      cells = answer.groups.map(cell);
      fill(grid, cells);
      if (focused !== null) cells.find(({ group }) => group.key === focused)?.el.focus();
    }
    const left = answer.total - answer.groups.length;
    more.hidden = left <= 0;
    write(more, `${whole(Math.min(left, MORE))} more of ${whole(left)}`);
    by.set(
      columns.map((column) => [column.name, column.title.toLowerCase()]),
      answer.column,
    );
    mark();
    fit();
  }

  /** The position, and what each model has there. */
  function paint() {
    if (!answer || answer.error || !cells.length) return;
    const { data, shape } = answer.arrays.values;
    const [, models, elements] = shape;
    const looks = app.shown(answer.models);
    const metric = app.metricNamed(answer.metric);
    const format = precise(metric.unit);
    const element = app.element();
    cells.forEach(({ glyph, numbers, group, el: box }, g) => {
      const values = data.subarray(g * models * elements, (g + 1) * models * elements);
      glyph.set({ models: looks, values, range: answer.range, mark: element });
      const said = looks.map((_, m) => format(values[m * elements + element]));
      if (numbers.childElementCount !== said.length)
        fill(
          numbers,
          said.map((_, m) => {
            const number = h("i", {});
            number.style.color = modelInk(looks[m].color);
            return number;
          }),
        );
      said.forEach((words, m) => write(numbers.children[m], words));
      box.title = `${group.name}: ${whole(group.count)} ${app.noun}. Click to select them.`;
    });
    legend.set(looks, null, { where: `at ${app.group.names[element]}`, format: () => "" });
  }

  /** Few plots are as large as there is room for, as on the stage. */
  function fit() {
    if (!cells.length || !grid.clientWidth) return;
    const side = sideOf(cells.length, grid.clientWidth, grid.clientHeight);
    grid.style.gridTemplateColumns = `repeat(auto-fill, minmax(${side + AROUND}px, 1fr))`;
    cells.forEach(({ glyph }) => glyph.resize(side));
    paint();
  }

  function mark() {
    const chosen = answer && !answer.error ? (clauseOf(app.store.get().filter, answer.column)?.values ?? []) : [];
    for (const { group, el: box } of cells) box.setAttribute("aria-pressed", String(chosen.includes(group.key)));
  }

  const sized = new ResizeObserver(fit);
  sized.observe(grid);
  const stops = [
    () => sized.disconnect(),
    app.on("classes", (given) => ((answer = given), draw())),
    app.store.subscribe(["filter"], mark),
    app.store.subscribe(["element"], paint),
    app.theme.on(paint),
  ];
  return { focus: () => cells[0]?.el.focus(), destroy: () => stops.forEach((stop) => stop()) };
}
