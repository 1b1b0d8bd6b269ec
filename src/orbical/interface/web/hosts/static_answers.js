// The answers of a report, from embedded parts: each a gzipped frame in base64, opened when needed.
import { DEFAULTS } from "../core/selection.js";
import { decode } from "../core/wire.js";
import { createContexts, setNames } from "./static_context.js";
import { pinned, place } from "./static_place.js";
import { confusion, sampleSet } from "./static_recipes.js";
import { hover, sample } from "./static_samples.js";
import {
  aggregate,
  calibration,
  classes,
  color,
  columns,
  consistency,
  coverage,
  list,
  spread,
  subset,
} from "./static_statistics.js";

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unzipped(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// Codes of 16 bits are differences from the one before, all low bytes before all high ones.
function summed(data) {
  const codes = new Uint16Array(data.length / 2);
  let code = 0;
  for (let i = 0; i < codes.length; i++) {
    code = (code + data[i] + 256 * data[codes.length + i]) % 65_536;
    codes[i] = code;
  }
  return codes;
}

// Numbers that were stored in steps, value = low + step * code, with one code for those missing. With
// `last` the steps are log odds of shares, and the first and the last code are 0 and 1.
function restored({ data }, { bits, low, step, missing, shape, last }) {
  const codes = bits === 16 ? summed(data) : data;
  const table = new Float32Array(2 ** bits);
  for (let code = 0; code < table.length; code++) {
    const value = low + step * code;
    table[code] = last === undefined ? value : 1 / (1 + Math.exp(-value));
  }
  if (last !== undefined) [table[0], table[last]] = [0, 1];
  if (missing !== null) table[missing] = NaN;
  const values = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) values[i] = table[codes[i]];
  return { data: values, shape };
}

async function unpack(text) {
  const { quantised = {}, same = {}, ...part } = decode(await unzipped(bytesOf(text)));
  for (const [name, steps] of Object.entries(quantised)) {
    part.arrays[name] = restored(part.arrays[name], steps);
  }
  for (const [name, first] of Object.entries(same)) part.arrays[name] = part.arrays[first];
  return part;
}

// A pack: `take(name)` gives a part as a promise, opened once. `textOf(name)` finds its text.
export function createPack(textOf) {
  const opened = new Map();
  return {
    take(name) {
      if (!opened.has(name)) opened.set(name, Promise.resolve(textOf(name)).then(unpack));
      return opened.get(name);
    },
  };
}

// Texts embedded in the page, or files beside it: scripts that hand over their text when loaded,
// because browsers let a page that was opened from a folder load scripts, but not read files.
export function textInPage(name) {
  const element = document.getElementById(`part:${name}`);
  if (element) return element.textContent;
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `parts/${name.replace(/[^\w.-]/g, "_")}.js`;
    globalThis.orbicalParts ??= {};
    script.onload = () => {
      resolve(globalThis.orbicalParts[name]);
      delete globalThis.orbicalParts[name];
      script.remove();
    };
    script.onerror = () => reject(new Error(`file not found: ${script.src}; keep the files of the report together`));
    document.head.append(script);
  });
}

// eslint-disable-next-line no-control-regex
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
// As the Python package writes tables: no control characters, and no formula for a spreadsheet to run.
const plain = (text) => text.replace(UNSAFE, "?").replace(/^[=+@-]/, "'$&");
const quoted = (cell) => {
  const text = typeof cell === "string" ? plain(cell) : String(cell);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
export const table = (rows) => `${rows.map((row) => row.map(quoted).join(",")).join("\n")}\n`;
const shown = (value) => (Number.isFinite(value) ? Number(value.toPrecision(7)) : "");

// The place of each element: its number and its coordinates.
function places({ state, elements }) {
  const names = Object.keys(state.group.coords);
  const head = ["element", ...names];
  const rows = Array.from({ length: elements }, (_, k) => [k, ...names.map((name) => state.group.coords[name][k])]);
  return { head, rows };
}

async function csv(context) {
  const { models, names, metric, selection, elements } = context;
  const { head, rows } = places(context);
  const whole = await aggregate(context);
  const one = await sample(context);
  const columns = models.flatMap((model, row) => [
    ...["values", "low", "high"]
      .filter((part) => whole.arrays[part]) // a measure of another subset is not in the report
      .map((part) => ({
        title: `${metric.name}${part === "values" ? "" : `_${part}`}_${names[model]}`,
        data: whole.arrays[part].data.subarray(row * elements),
      })),
    { title: `sample_${selection.sample}_${names[model]}`, data: one.arrays.values.data.subarray(row * elements) },
  ]);
  const body = rows.map((row, k) => [...row, ...columns.map(({ data }) => shown(data[k]))]);
  return ["orbical.csv", "text/csv", table([[...head, ...columns.map(({ title }) => title)], ...body])];
}

async function indices(context) {
  const original = context.state.arrays.original.data;
  const rows = await context.rows();
  return ["orbical-samples.txt", "text/plain", table(rows.map((row) => [original[row]]))];
}

const FILES = { csv, indices };

export async function exported(context, { what }) {
  if (!(what in FILES)) {
    throw new Error(`a report cannot export ${what}; use orbical view or the Python package`);
  }
  const [filename, type, text] = await FILES[what](context);
  const data = new TextEncoder().encode(text);
  return { filename, type, arrays: { file: { data, shape: [data.length] } } };
}

async function embedding(context) {
  const { xy, ...about } = await context.map();
  const { reference, selection } = context;
  return { method: selection.method, of: selection.of, reference, ...about, arrays: { xy } };
}

const bounds = async ({ pack }) => pack.take("bounds");
const worst = async ({ pack }) => pack.take("worst");
const headline = async ({ state }) => ({ ...state.report.headline, arrays: {} });

const ANSWERS = {
  aggregate,
  consistency,
  columns,
  spread,
  classes,
  embedding,
  headline,
  color,
  names: setNames,
  set: sampleSet,
  subset,
  list,
  sample,
  hover,
  place,
  pinned,
  calibration,
  confusion,
  coverage,
  bounds,
  worst,
  export: exported,
};

// A function from requests to answers, over the parts of a report.
export function createAnswers(pack) {
  let contexts = null;

  return async ({ kind, sequence, selection, ...extra }) => {
    try {
      const state = await pack.take("state");
      contexts ??= createContexts(pack, state);
      if (kind === "state") return { ...state, kind, sequence };
      const answer = await ANSWERS[kind](contexts({ ...DEFAULTS, ...selection }), extra);
      return { ...answer, kind, sequence };
    } catch (/** @type {any} */ error) {
      return { kind, sequence, error: error?.message ?? String(error), ...error?.about, arrays: {} };
    }
  };
}
