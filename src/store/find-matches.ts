// Looks for repetitions in a block of bytes, for the formats of the LZ77 family that store them without entropy coding.
const hashBits = 13;
const leastMatch = 4;
/** Bytes that the hash is made of: of short repetitions, as random digits are full of, none but the longer ones pay. */
const hashedBytes = 6;
/** Positions passed over grow by one for so many tries without a match, so that random bytes cost little. */
const skipShift = 5;
const table = new Uint16Array(1 << hashBits);

/** Largest block: its positions fit into the table. */
export const mostBlockBytes = 64 * 1024;

/** Told of each repetition: literals from `literal` to `at`, then `length` bytes as they are `offset` before. */
export type MatchSink = (literal: number, at: number, offset: number, length: number) => void;

/**
 * Finds repetitions greedily in a block of at most 64 KiB; returns where the literals begin that follow the last one. `quietEnd`
 * bytes at the end are never part of a repetition.
 */
export function findMatches(block: Uint8Array, quietEnd: number, sink: MatchSink): number {
  table.fill(0);
  const view = viewOf(block);
  const end = block.length - quietEnd;
  const limit = Math.min(end - leastMatch, block.length - hashedBytes);
  let literal = 0;
  let tries = 1 << skipShift;
  // An empty place of the table means the block's begin, which is compared like any other.
  for (let at = 1; at < limit; ) {
    const four = view.getInt32(at, true);
    const slot =
      (Math.imul(four, 0x9e3779b1) + Math.imul(view.getUint16(at + 4, true), 0x85ebca77)) >>> (32 - hashBits);
    const candidate = table[slot] as number;
    table[slot] = at;
    if (view.getInt32(candidate, true) !== four) {
      at += tries++ >>> skipShift;
      continue;
    }
    tries = 1 << skipShift;
    const length = leastMatch + commonBytes(view, candidate + leastMatch, at + leastMatch, end);
    sink(literal, at, at - candidate, length);
    at += length;
    literal = at;
  }
  return literal;
}

/** Of bytes that are read and written several at once. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function commonBytes(view: DataView, from: number, to: number, end: number): number {
  let at = to;
  for (; at + 4 <= end; at += 4) {
    const differing = view.getInt32(from + at - to, true) ^ view.getInt32(at, true);
    // The lowest bit that differs tells the first byte that does.
    if (differing !== 0) return at - to + ((31 - Math.clz32(differing & -differing)) >>> 3);
  }
  while (at < end && view.getUint8(from + at - to) === view.getUint8(at)) at++;
  return at - to;
}
