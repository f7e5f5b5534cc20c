// Looks for repetitions in a block of bytes, for the formats of the LZ77 family that store them without entropy coding.
const hashBits = 14;
const leastMatch = 4;
/** Positions passed over grow by one for so many tries without a match, so that random bytes cost little. */
const skipShift = 6;
const table = new Int32Array(1 << hashBits);

/** Told of each repetition: literals from `literal` to `at`, then `length` bytes as they are `offset` before. */
export type MatchSink = (literal: number, at: number, offset: number, length: number) => void;

/**
 * Finds repetitions greedily; returns where the literals begin that follow the last one. `quietEnd` bytes at the end are never
 * part of a repetition.
 */
export function findMatches(block: Uint8Array, largestOffset: number, quietEnd: number, sink: MatchSink): number {
  table.fill(-1);
  const limit = block.length - Math.max(quietEnd, leastMatch);
  let literal = 0;
  let tries = 1 << skipShift;
  for (let at = 0; at < limit; ) {
    const slot = (Math.imul(word(block, at), 2654435761) >>> (32 - hashBits)) as number;
    const candidate = table[slot] as number;
    table[slot] = at;
    if (candidate < 0 || at - candidate > largestOffset || word(block, candidate) !== word(block, at)) {
      at += tries++ >>> skipShift;
      continue;
    }
    tries = 1 << skipShift;
    let length = leastMatch;
    const longest = block.length - quietEnd - at;
    while (length < longest && block[candidate + length] === block[at + length]) length++;
    sink(literal, at, at - candidate, length);
    at += length;
    literal = at;
  }
  return literal;
}

function word(block: Uint8Array, at: number): number {
  return (
    (block[at] as number) |
    ((block[at + 1] as number) << 8) |
    ((block[at + 2] as number) << 16) |
    ((block[at + 3] as number) << 24)
  );
}
