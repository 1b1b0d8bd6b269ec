// Frames: u32 header length, JSON header padded to 4, raw little-endian buffers, each padded to 4.

const KINDS = { u1: Uint8Array, i4: Int32Array, u4: Uint32Array, f4: Float32Array, png: Uint8Array };

/** How many numbers a shape holds. */
export function size(shape) {
  return shape.reduce((product, length) => product * length, 1);
}

/** Read one frame (ArrayBuffer or a view of one) into its header and named arrays. */
export function decode(frame) {
  const bytes = aligned(frame);
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  if (4 + length > bytes.byteLength) throw new Error("frame: shorter than its header says");
  const text = new TextDecoder().decode(bytes.subarray(4, 4 + length));
  const { arrays = [], ...fields } = JSON.parse(text);
  const named = {};
  let at = 4 + length;
  for (const { name, dtype, shape } of arrays) {
    const Kind = KINDS[dtype];
    if (!Kind) throw new Error(`frame: array ${name} of unknown type ${dtype}`);
    const items = size(shape);
    const end = at + items * Kind.BYTES_PER_ELEMENT;
    if (end > bytes.byteLength) throw new Error(`frame: array ${name} is cut off`);
    named[name] = { data: new Kind(bytes.buffer, bytes.byteOffset + at, items), shape, dtype };
    at = Math.ceil(end / 4) * 4;
  }
  return { ...fields, arrays: named };
}

/** A byte view whose start is a multiple of 4, copied only where it is not. */
function aligned(frame) {
  if (frame instanceof ArrayBuffer) return new Uint8Array(frame);
  const bytes = new Uint8Array(frame.buffer, frame.byteOffset, frame.byteLength);
  return bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
}
