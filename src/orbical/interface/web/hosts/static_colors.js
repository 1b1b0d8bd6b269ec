// One number for each sample of a report, to color the map by.
import { columnOf, keysOf, titled } from "./static_columns.js";
import { overModels } from "./static_subset.js";

const TAIL = 1.5; // widths of the middle 98 %, beyond which numbers are drawn as its ends

// The ends of a scale: the range of the values, without tails that are far away.
export function robustEnds(values) {
  const seen = values.filter((value) => Number.isFinite(value)).sort();
  if (!seen.length) return [0, 1];
  const at = (share) => {
    const place = share * (seen.length - 1);
    const [k, part] = [Math.floor(place), place % 1];
    return seen[k] + part * (seen[Math.min(k + 1, seen.length - 1)] - seen[k]);
  };
  const [low, high, least, most] = [at(0.01), at(0.99), seen[0], seen[seen.length - 1]];
  const reach = TAIL * (high - low);
  return [least >= low - reach ? least : low, most <= high + reach ? most : high];
}

async function ofMetric(context) {
  const { perSample: metric, selection } = context;
  const found = await context.moments(metric.name);
  const spread = selection.color === "variance";
  const values = overModels({ data: found[selection.color], models: found.models }, context.of, context.samples);
  const range = spread ? [0, robustEnds(values)[1]] : metric.unit === "share" ? [0, 1] : robustEnds(values);
  const title = `${metric.title}, ${selection.color} over the orbit`;
  return { values, scale: "sequential", range, title, higher_is_better: spread ? false : metric.higher_is_better };
}

async function ofColumn(context) {
  const { selection, names, state } = context;
  const { column, values } = await columnOf(context, selection.color, selection.of);
  const title = titled(column, names, selection.of);
  if (column.kind === "category") {
    const range = [0, keysOf(column, state).length - 1];
    return { values: Float32Array.from(values), scale: "classes", range, title, names: column.keys };
  }
  const range = column.ends ?? robustEnds(values);
  const scale = range[0] === -1 ? "diverging" : "sequential";
  return {
    values: values.map((value) => (value === Infinity ? range[1] : value)),
    scale,
    range,
    title,
    unit: column.unit,
  };
}

export async function color(context) {
  const { values, ...about } = await (["mean", "variance"].includes(context.selection.color) ? ofMetric : ofColumn)(
    context,
  );
  return { ...about, arrays: { values: { data: values, shape: [values.length] } } };
}
