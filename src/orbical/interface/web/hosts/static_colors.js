// One number for each sample of a report, to color the map by.
import { overModels } from "./static_subset.js";

function spread(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

async function momentOf(context, name, moment) {
  const found = await context.moments(name);
  return overModels({ data: found[moment], models: found.models }, context.of, context.samples);
}

const COLORS = {
  async mean(context) {
    const metric = context.perSample;
    const values = await momentOf(context, metric.name, "mean");
    const range = metric.unit === "share" ? [0, 1] : spread(values);
    return { values, scale: "sequential", range, title: `${metric.title}, mean over the orbit` };
  },
  async variance(context) {
    const values = await momentOf(context, context.perSample.name, "variance");
    const title = `${context.perSample.title}, variance over the orbit`;
    return { values, scale: "sequential", range: [0, spread(values)[1]], title };
  },
  async correct(context) {
    const values = await momentOf(context, "correct", "mean");
    return { values, scale: "sequential", range: [0, 1], title: "Fraction of the orbit predicted correctly" };
  },
  async class({ state }) {
    const values = Float32Array.from(state.arrays.label.data);
    return { values, scale: "classes", range: [0, state.classes.length - 1], title: "Class" };
  },
  async gap(context) {
    if (context.has("correct") && context.has("confidence")) {
      const right = await momentOf(context, "correct", "mean");
      const values = (await momentOf(context, "confidence", "mean")).map((sure, i) => sure - right[i]);
      return { values, scale: "diverging", range: [-1, 1], title: "Confidence minus accuracy over the orbit" };
    }
    const { data, shape } = context.state.arrays.invariance_gap;
    const values = overModels({ data, models: shape[0] }, context.of, context.samples);
    const title = "Invariance gap: distance of the predictions from their mean";
    return { values, scale: "sequential", range: [0, spread(values)[1]], title };
  },
};

export async function color(context) {
  const { values, ...about } = await COLORS[context.selection.color](context);
  return { ...about, arrays: { values: { data: values, shape: [values.length] } } };
}
