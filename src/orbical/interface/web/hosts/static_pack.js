// Reading what is embedded in a report: parts, each a gzipped frame in base64, opened when needed.
import { decode } from "../core/wire.js";

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

// Numbers that were stored in steps, value = low + step * code, with one code for those missing. With
// `last` the steps are log odds of shares, and the first and the last code are 0 and 1.
function restored({ data }, { bits, low, step, missing, shape, last }) {
  const codes = bits === 16 ? new Uint16Array(data.slice().buffer) : data;
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
  const { quantised = {}, ...part } = decode(await unzipped(bytesOf(text)));
  for (const [name, steps] of Object.entries(quantised)) {
    part.arrays[name] = restored(part.arrays[name], steps);
  }
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
