// The metric along the orbit for each class of a report, or each value of another column.
import { parseClause, writeClause } from "../core/clauses.js";
import { groupColumns } from "../core/selection_rules.js";
import { aggregate } from "./static_aggregate.js";
import { columnOf, keysOf } from "./static_columns.js";
import { axisOf } from "./static_recorded.js";

const FIRST = 12;

// The mean of the numbers that there are, by which the worst group comes first; none comes last.
function badness({ higher_is_better: better }, values) {
  const seen = values.filter(Number.isFinite);
  if (!seen.length) return Infinity;
  return ((better === false ? -1 : 1) * seen.reduce((sum, value) => sum + value, 0)) / seen.length;
}

export async function classes(context, { most = FIRST }) {
  const { selection, state, metric, models, names, elements } = context;
  const known = groupColumns(state);
  if (!known.length) throw new Error("show: expected a column of categories for groups, got a scan without");
  const { name } = known.find((column) => column.name === selection.by) ?? known[0];
  // A filter by the column itself is left out: the group that was chosen keeps the others beside it.
  const others = selection.filter.filter((text) => parseClause(text).column !== name);
  const { column, values: codes } = await columnOf(context, name);
  const keys = keysOf(column, state);
  const members = keys.map(() => []);
  for (const row of await context.rows(others)) members[codes[row]]?.push(row);
  const found = [];
  for (const [code, key] of keys.entries()) {
    const filter = [...others, writeClause({ column: name, values: [key] })];
    const answer = await aggregate({
      ...context,
      selection: { ...selection, filter },
      rows: async () => members[code],
    });
    if (answer.available === false) return answer;
    const { count, arrays } = answer;
    if (!count) continue;
    found.push({
      key,
      name: column.keys ? key : String(state.classes[code]),
      count,
      values: arrays.values.data,
      rank: badness(metric, arrays.values.data),
    });
  }
  if (found.length > FIRST) found.sort((one, other) => one.rank - other.rank);
  const shown = found.slice(0, most);
  const data = new Float32Array(shown.length * models.length * elements);
  shown.forEach(({ values }, g) => data.set(values, g * models.length * elements));
  return {
    column: name,
    groups: shown.map((one) => ({ key: one.key, name: one.name, count: one.count })),
    total: found.length,
    metric: metric.name,
    models: models.map((model) => names[model]),
    range: axisOf(
      metric,
      found.flatMap(({ values }) => [...values]),
    ),
    reference: context.reference,
    arrays: { values: { data, shape: [shown.length, models.length, elements] } },
  };
}
