// How often answers change along the orbit. Shares of all samples and of each class come from sums
// over the whole scan; those of a subset from the samples in the report.
import { shareInterval } from "./static_intervals.js";

function add(sums, other) {
  return { count: sums.count + other[0], total: sums.total + other[1], squares: sums.squares + other[2] };
}

const NONE = { count: 0, total: 0, squares: 0 };

export async function consistency(context) {
  const { pack, classes, models, names } = context;
  const { arrays: held, members } = await pack.take("consistency");
  const rows = classes ? null : await context.rows();
  const groups = classes?.length ? classes.map((one) => 1 + one).filter((one) => one < members.length) : [0];

  function sumsOf(name, model) {
    if (rows) {
      const { data, shape } = held[name];
      const values = rows.map((row) => data[model * shape[1] + row]).filter(Number.isFinite);
      return values.reduce((sums, value) => add(sums, [1, value, value * value]), NONE);
    }
    const { data, shape } = held[`${name}/sums`];
    const start = (group) => 3 * (model * shape[1] + group);
    return groups.reduce((sums, group) => add(sums, data.subarray(start(group), start(group) + 3)), NONE);
  }

  const arrays = Object.fromEntries(
    ["changed", "pairs"].map((name) => {
      const data = Float32Array.from(models.flatMap((model) => shareInterval(sumsOf(name, model))));
      return [name, { data, shape: [models.length, 3] }];
    }),
  );
  const count = rows ? rows.length : groups.reduce((sum, group) => sum + members[group], 0);
  return { count, models: models.map((model) => names[model]), arrays };
}
