import type { Random } from "../../src/ports/clock.ts";

/** Random values that are the same for each run with the same seed (mulberry32). */
export function createSeededRandom(seed = 1): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return (value ^ (value >>> 14)) >>> 0;
  };
  return {
    float: () => next() / 2 ** 32,
    bytes: (length) => Uint8Array.from({ length }, () => next() & 0xff),
  };
}
