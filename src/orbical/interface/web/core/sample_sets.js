// SHA-256 as in FIPS 180-4. The browser's own is missing on pages of plain HTTP, where a report may lie.

const ROOTS = primes(64).map((prime) => fraction(Math.cbrt(prime)));
const START = primes(8).map((prime) => fraction(Math.sqrt(prime)));

function primes(count) {
  const found = [];
  for (let n = 2; found.length < count; n += 1) if (found.every((prime) => n % prime)) found.push(n);
  return found;
}

/** The first 32 bits of the fraction of a number. */
function fraction(number) {
  return Math.floor((number - Math.floor(number)) * 2 ** 32) | 0;
}

const turned = (word, by) => (word >>> by) | (word << (32 - by));

/** The hash of some bytes, in hexadecimal digits. */
export function sha256(bytes) {
  const padded = new Uint8Array(64 * Math.ceil((bytes.length + 9) / 64));
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const words = new DataView(padded.buffer);
  words.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  const state = Int32Array.from(START);
  const schedule = new Int32Array(64);
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i += 1) schedule[i] = words.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i += 1) {
      const [far, near] = [schedule[i - 15], schedule[i - 2]];
      const first = turned(far, 7) ^ turned(far, 18) ^ (far >>> 3);
      const second = turned(near, 17) ^ turned(near, 19) ^ (near >>> 10);
      schedule[i] = schedule[i - 16] + first + schedule[i - 7] + second;
    }
    mix(state, schedule);
  }
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/** One block: 64 rounds on eight words. */
function mix(state, schedule) {
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i += 1) {
    const upper = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
    const one = (h + upper + ((e & f) ^ (~e & g)) + ROOTS[i] + schedule[i]) | 0;
    const lower = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
    const two = (lower + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] = (state[i] + word) | 0));
}

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
