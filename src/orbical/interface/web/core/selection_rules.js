// Between two samplings of one orbit: which element of one is nearest to a place of the other.
import { parseClause } from "./clauses.js";
import { DEFAULTS } from "./selection.js";

const AXES = ["angle", "dx", "dy", "scale"];

/** The continuous coordinates of an element, in the order in which positions are written. */
export function coordinates(group, element) {
  return AXES.filter((axis) => group.coords[axis]).map((axis) => group.coords[axis][element]);
}

/** The element nearest to a position; angles go around. */
export function nearestElement(group, position) {
  const around = Boolean(group.coords.angle);
  let [best, least] = [0, Infinity];
  for (let k = 0; k < group.names.length; k += 1) {
    const off = coordinates(group, k).reduce((sum, value, axis) => {
      const apart = Math.abs(value - position[axis]);
      return sum + (around ? Math.min(apart, 360 - apart) : apart) ** 2;
    }, 0);
    if (off < least) [best, least] = [k, off];
  }
  return best;
}

export const MOST_PINS = 8;

/** The fields to change when the reader changes `patch`. */
export function consequences(selection, patch) {
  if ("scan" in patch && patch.scan !== selection.scan) return { ...DEFAULTS, scan: patch.scan };
  const full = { ...patch };
  if ("element" in patch && !("position" in patch)) full.position = [];
  return full;
}

/** Turn one of `all` on or off in a list where the empty list means all of them. */
export function toggled(chosen, one, all) {
  const now = chosen.length ? chosen : all;
  const next = now.includes(one) ? now.filter((other) => other !== one) : [...now, one];
  if (!next.length) return chosen;
  return next.length === all.length ? [] : all.filter((other) => next.includes(other));
}

/** Turn one class on or off, where the first click on "all" picks that class alone. */
export function picked(chosen, one, all) {
  if (!chosen.length) return [one];
  const next = chosen.includes(one) ? chosen.filter((other) => other !== one) : [...chosen, one];
  return next.length === all.length ? [] : all.filter((other) => next.includes(other));
}

/** Pin a sample or take its pin away; of too many the first one goes. */
export function pinned(pins, sample) {
  if (pins.includes(sample)) return pins.filter((other) => other !== sample);
  return [...pins, sample].slice(-MOST_PINS);
}

/** Whether a clause is of a column and a model that exist, and of its kind. */
function applies({ column, model, values }, state) {
  const found = state.columns.find(({ name }) => name === column);
  if (!found || (found.kind !== "number" && !values)) return false;
  return !model || (found.by_model && state.models.some(({ name }) => name === model));
}

/** The orders of the list: by the metric, or by a column of numbers, from either end. */
export function orders(state) {
  const numeric = state.columns.filter(({ kind }) => kind === "number").map(({ name }) => name);
  return ["worst", "best", "variable", ...numeric.flatMap((name) => [name, `-${name}`])];
}

/** What the aggregate section can show. */
export function shows(state) {
  return ["mean", "spread", ...(groupColumns(state).length ? ["classes"] : []), ...(state.runs ? ["runs"] : [])];
}

/** The columns whose values divide the samples into groups. */
export function groupColumns({ columns = [] }) {
  return columns.filter((column) => column.kind === "category" && !column.by_model);
}

/** The selection where the group of a scan became finer: at the element nearest to the one before. */
export function atSamePlace(selection, before, after) {
  if (!before || selection.element < 0 || before.group.spec === after.group.spec) return selection;
  const position = coordinates(before.group, selection.element);
  const alike = position.length && position.length === coordinates(after.group, 0).length;
  return { ...selection, element: alike ? nearestElement(after.group, position) : -1 };
}

/** The field values of a state that a link may lack: what to do with names that do not exist. */
export function validated(selection, state) {
  const names = state.models.map((model) => model.name);
  const known = (name, list, instead) => (list.includes(name) ? name : instead);
  const models = selection.models.filter((name) => names.includes(name));
  const references = state.task.labeled ? ["truth", "consensus", "both"] : ["consensus"];
  const metrics = state.metrics.map((metric) => metric.name);
  return {
    ...selection,
    models: models.length === names.length ? [] : models,
    metric: known(selection.metric, metrics, ""),
    reference: known(selection.reference, references, references[0]),
    filter: selection.filter.filter((text) => applies(parseClause(text), state)),
    method: known(selection.method, state.methods, state.methods[0] ?? "pca"),
    of: known(selection.of, names, ""),
    color: known(selection.color, state.colors, state.colors[0] ?? "mean"),
    order: known(selection.order, orders(state), "worst"),
    listing: known(selection.listing, ["list", "grid"], "list"),
    scope: known(selection.scope, ["element", "orbit"], "element"),
    sample: Math.min(Math.max(0, selection.sample), Math.max(0, state.samples - 1)),
    element: selection.element < state.group.names.length ? Math.max(-1, selection.element) : -1,
    position: state.live ? selection.position : [],
    slices: selection.slices.length === 3 ? selection.slices : [],
    dense: selection.dense && state.live && !state.report,
    marks: known(selection.marks, ["points", "glyphs"], "points"),
    scale: known(selection.scale, ["fit", "full"], "fit"),
    shape: known(selection.shape, ["circle", "line"], "circle"),
    pins: [...new Set(selection.pins)].filter((one) => one >= 0 && one < state.samples).slice(0, MOST_PINS),
    show: known(selection.show, shows(state), "mean"),
    by: known(
      selection.by,
      groupColumns(state).map((column) => column.name),
      "",
    ),
    quantile: known(selection.quantile, ["5", "25", "50", "75", "95"], ""),
    runs: known(selection.runs, ["curves", "difference"], "curves"),
    against: known(selection.against, state.scans?.map(({ name }) => name) ?? [], ""),
    answers: known(selection.answers, state.answers ?? ["reliability"], "reliability"),
  };
}
