/** The rows of a table of runs: their names and looks, their columns, their order, and maps of them. */

import { DASHES, modelColor } from "./colors.js";
import { distinct } from "./format.js";

const COLORS = 7;
const LONG = 12; // letters of a name that the table has room for

/** What the table has of each run. */
export const COLUMNS = [
  { key: "accuracy", title: "accuracy", meaning: "Accuracy over the orbit" },
  { key: "gap", title: "gap", meaning: "Confidence minus accuracy over the orbit" },
  { key: "ece", title: "ECE", meaning: "Expected calibration error over the orbit" },
  { key: "changed", title: "changed", meaning: "Share of samples whose answer changes along the orbit" },
  { key: "mean", title: "mean", meaning: "Mean of the metric over the orbit" },
];

/** The columns that some run has; the mean of the accuracy is the accuracy. */
export function columnsOf(rows, metric) {
  return COLUMNS.filter(({ key }) => rows.some((row) => Number.isFinite(row[key] ?? NaN))).filter(
    ({ key }) => key !== "mean" || metric !== "correct",
  );
}

/** Whether each run has one model, so that its own name says enough. */
export function single(rows) {
  return new Set(rows.map(({ scan }) => scan)).size === rows.length;
}

/** The name, its `title` where that is cut, the color and the dash of each row: a color for each run, and a dash for each of its models. */
export function looksOf(rows) {
  const scans = [...new Set(rows.map(({ scan }) => scan))];
  const models = [...new Set(rows.map(({ model }) => model))];
  const alone = single(rows);
  const names = rows.map(({ scan, model }) => (alone ? scan : `${scan} · ${model}`));
  const short = distinct(names, LONG);
  return rows.map(({ scan, model }, r) => {
    const place = scans.indexOf(scan);
    const dash = alone ? place + Math.floor(place / COLORS) : models.indexOf(model);
    return {
      name: short[r],
      title: short[r] === names[r] ? null : names[r],
      color: modelColor(place),
      dash: DASHES[dash % DASHES.length],
    };
  });
}

/** The order of values, up or down; what has none comes last either way. */
export function orderBy(values, down) {
  const known = (value) => (typeof value === "string" || Number.isFinite(value ?? NaN) ? 0 : 1);
  const compared = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  return [...values.keys()].sort((i, j) => {
    const [a, b] = [values[i], values[j]];
    return known(a) - known(b) || (known(a) ? 0 : (down ? -1 : 1) * compared(a, b)) || i - j;
  });
}

/** Maps `{ name, values }` of some scans, `values` of all `models` and elements, flat; NaN where a run has none. */
export function mapsOf(rows, curves, size, scans, models) {
  const short = distinct(scans, LONG);
  return scans.map((scan, n) => {
    const values = new Float32Array(models.length * size).fill(NaN);
    rows.forEach((row, r) => {
      const m = models.length > 1 ? models.indexOf(row.model) : 0;
      if (row.scan === scan) values.set(curves.subarray(r * size, (r + 1) * size), m * size);
    });
    return { name: short[n], values };
  });
}
