import { longestLength } from "./lzma-model.ts";

const hashBits = 18;
const shortHashBits = 15;
const shortReach = 1 << 15;

/**
 * Finds earlier places that hold the bytes at a place: chains of places whose first four bytes hash alike, and the last place of
 * three bytes. Places count from the begin of the stream; `base` is that of the window's first byte.
 */
export class MatchFinder {
  length = 0;
  distance = 0;
  readonly #window: Uint8Array;
  readonly #heads = new Int32Array(1 << hashBits);
  readonly #shortHeads = new Int32Array(1 << shortHashBits);
  readonly #before: Int32Array;
  readonly #mask: number;
  readonly #depth: number;
  readonly #enough: number;

  /** `dictionary` is a power of two. */
  constructor(window: Uint8Array, dictionary: number, depth: number, enough: number) {
    this.#window = window;
    this.#before = new Int32Array(dictionary);
    this.#mask = dictionary - 1;
    this.#depth = depth;
    this.#enough = enough;
  }

  /** Forgets all places. */
  clear(): void {
    this.#heads.fill(0);
    this.#shortHeads.fill(0);
  }

  /** Notes a place; `at` is its index in the window. Its bytes must reach four further. */
  insert(at: number, base: number): void {
    const key = this.#key(at);
    const place = base + at + 1;
    this.#before[place & this.#mask] = this.#heads[key] as number;
    this.#heads[key] = place;
    this.#shortHeads[this.#shortKey(at)] = place;
  }

  /** Notes a place and finds the best earlier one: its length (0 for none) and distance, the nearest being 1. */
  find(at: number, base: number, end: number): void {
    const window = this.#window;
    const limit = Math.min(longestLength, end - at);
    const place = base + at + 1;
    const oldest = Math.max(base + 1, place - this.#mask);
    const key = this.#key(at);
    const shortKey = this.#shortKey(at);
    let candidate = this.#heads[key] as number;
    const near = this.#shortHeads[shortKey] as number;
    this.#before[place & this.#mask] = candidate;
    this.#heads[key] = place;
    this.#shortHeads[shortKey] = place;
    let best = 2;
    let distance = 0;
    if (near >= oldest && place - near < shortReach) {
      const length = this.#common(near - 1 - base, at, limit);
      if (length > best) {
        best = length;
        distance = place - near;
      }
    }
    for (let left = this.#depth; left > 0 && candidate >= oldest && best < limit; left--) {
      const from = candidate - 1 - base;
      if (window[from + best] === window[at + best]) {
        const length = this.#common(from, at, limit);
        // A longer match that lies much farther away may cost more than its bytes are worth.
        if (length > best + (distance > 0 && place - candidate > distance * 128 ? 1 : 0)) {
          best = length;
          distance = place - candidate;
          if (best >= this.#enough) break;
        }
      }
      candidate = this.#before[candidate & this.#mask] as number;
    }
    this.length = distance === 0 ? 0 : best;
    this.distance = distance;
  }

  #common(from: number, at: number, limit: number): number {
    const window = this.#window;
    let length = 0;
    while (length < limit && window[from + length] === window[at + length]) length += 1;
    return length;
  }

  #key(at: number): number {
    const w = this.#window;
    const word =
      (w[at] as number) | ((w[at + 1] as number) << 8) | ((w[at + 2] as number) << 16) | ((w[at + 3] as number) << 24);
    return Math.imul(word, 0x9e37_79b1) >>> (32 - hashBits);
  }

  #shortKey(at: number): number {
    const w = this.#window;
    const word = (w[at] as number) | ((w[at + 1] as number) << 8) | ((w[at + 2] as number) << 16);
    return Math.imul(word, 0x85eb_ca6b) >>> (32 - shortHashBits);
  }
}
