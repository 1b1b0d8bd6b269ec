// Reading what is embedded in a report: parts, each a gzipped frame in base64, opened when needed.
import { decode } from "../core/wire.js";

function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unzipped(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// Numbers that were stored in steps: value = low + step * code, the largest code for missing ones.
function restored({ data, shape }, { bits, low, step }) {
  const codes = bits === 16 ? new Uint16Array(data.slice().buffer) : data;
  const missing = 2 ** bits - 1;
  const values = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) values[i] = codes[i] === missing ? NaN : low + step * codes[i];
  return { data: values, shape: bits === 16 ? [...shape.slice(0, -1), shape.at(-1) / 2] : shape };
}

export async function unpack(text) {
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
    script.onerror = () => reject(new Error(`the file ${script.src} is missing beside the report`));
    document.head.append(script);
  });
}
