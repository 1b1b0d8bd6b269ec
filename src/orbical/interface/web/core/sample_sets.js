// Sets of samples as bits, the first sample lowest, each named by a hash of its bits, as in Python.

import { sha256 } from "./sha256.js";

const DIGITS = 16;
const LETTERS = 1500; // an address that mail and chat programs leave whole

/** How many samples a set holds. */
export function sizeOf(bits) {
  let count = 0;
  for (let byte of bits) for (; byte; byte &= byte - 1) count += 1;
  return count;
}

/** A mask of ones and zeros as bits. */
export function packed(mask) {
  const bits = new Uint8Array(Math.ceil(mask.length / 8));
  for (let i = 0; i < mask.length; i += 1) if (mask[i]) bits[i >> 3] |= 1 << (i & 7);
  return bits;
}

/** Bits as a mask of ones and zeros. */
export function unpacked(bits, samples) {
  const mask = new Uint8Array(samples);
  for (let i = 0; i < samples; i += 1) mask[i] = (bits[i >> 3] >> (i & 7)) & 1;
  return mask;
}

/** The name of a set among some samples; empty for all of them. */
export function nameOf(bits, samples) {
  return sizeOf(bits) === samples ? "" : sha256(bits).slice(0, DIGITS);
}

/** Bits in base64, to be sent. */
export function toText(bits) {
  let text = "";
  for (let i = 0; i < bits.length; i += 8192) text += String.fromCharCode(...bits.subarray(i, i + 8192));
  return btoa(text);
}

/** A set as runs of sample numbers, "3,17,20-40", for an address; null if that is too long for one. */
export function toRuns(bits) {
  const parts = [];
  let [start, length] = [-1, 0];
  for (let i = 0; i <= 8 * bits.length; i += 1) {
    const inside = (bits[i >> 3] >> (i & 7)) & 1;
    if (inside && start < 0) start = i;
    if (inside || start < 0) continue;
    const run = i - 1 > start ? `${start}-${i - 1}` : `${start}`;
    length += run.length + 1;
    if (length > LETTERS) return null;
    parts.push(run);
    start = -1;
  }
  return parts.join(",");
}

/** Read what `toRuns` wrote; null if it names no samples of this scan. */
export function fromRuns(text, samples) {
  const mask = new Uint8Array(samples);
  for (const run of text ? text.split(",") : []) {
    const ends = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(run);
    const [first, last] = ends ? [Number(ends[1]), Number(ends[2] ?? ends[1])] : [0, samples];
    if (last >= samples) return null;
    mask.fill(1, first, last + 1);
  }
  return packed(mask);
}
