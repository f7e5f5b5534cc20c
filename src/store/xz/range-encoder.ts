import { leastLength, lengthPlaces } from "./lzma-model.ts";

/** Writes bits by their probabilities into one piece of an LZMA2 stream. */
export class RangeEncoder {
  readonly bytes: Uint8Array;
  size = 0;
  readonly #probabilities: Uint16Array;
  #low = 0;
  #range = 0xffff_ffff;
  #held = 0;
  #heldCount = 1;

  constructor(capacity: number, probabilities: Uint16Array) {
    this.bytes = new Uint8Array(capacity);
    this.#probabilities = probabilities;
  }

  /** Bytes that the piece would have if it ended now, about. */
  get pending(): number {
    return this.size + this.#heldCount + 4;
  }

  restart(): void {
    this.size = 0;
    this.#low = 0;
    this.#range = 0xffff_ffff;
    this.#held = 0;
    this.#heldCount = 1;
  }

  finish(): Uint8Array {
    for (let left = 5; left > 0; left--) this.#shift();
    return this.bytes.subarray(0, this.size);
  }

  bit(at: number, bit: number): void {
    const p = this.#probabilities;
    const probability = p[at] as number;
    const bound = Math.imul(this.#range >>> 11, probability) >>> 0;
    if (bit === 0) {
      this.#range = bound;
      p[at] = probability + ((2048 - probability) >> 5);
    } else {
      this.#low += bound;
      this.#range -= bound;
      p[at] = probability - (probability >> 5);
    }
    if (this.#range < 0x100_0000) {
      this.#range = (this.#range << 8) >>> 0;
      this.#shift();
    }
  }

  /** The highest of `count` bits first, each as likely as not. */
  plain(value: number, count: number): void {
    for (let at = count - 1; at >= 0; at--) {
      this.#range >>>= 1;
      if ((value >>> at) & 1) this.#low += this.#range;
      if (this.#range < 0x100_0000) {
        this.#range = (this.#range << 8) >>> 0;
        this.#shift();
      }
    }
  }

  tree(base: number, value: number, bits: number): void {
    let node = 1;
    for (let at = bits - 1; at >= 0; at--) {
      const bit = (value >>> at) & 1;
      this.bit(base + node, bit);
      node = (node << 1) | bit;
    }
  }

  reverseTree(base: number, value: number, bits: number): void {
    let node = 1;
    for (let at = 0; at < bits; at++) {
      const bit = (value >>> at) & 1;
      this.bit(base + node, bit);
      node = (node << 1) | bit;
    }
  }

  length(base: number, length: number, positionState: number): void {
    const value = length - leastLength;
    if (value < 8) {
      this.bit(base + lengthPlaces.choice, 0);
      this.tree(base + lengthPlaces.low + positionState * 8, value, 3);
      return;
    }
    this.bit(base + lengthPlaces.choice, 1);
    this.bit(base + lengthPlaces.choice2, value < 16 ? 0 : 1);
    if (value < 16) this.tree(base + lengthPlaces.middle + positionState * 8, value - 8, 3);
    else this.tree(base + lengthPlaces.high, value - 16, 8);
  }

  /** Lets go of the highest byte. One that a later carry may still change is held, and all that are 255 behind it. */
  #shift(): void {
    if (this.#low < 0xff00_0000 || this.#low > 0xffff_ffff) {
      const carry = this.#low > 0xffff_ffff ? 1 : 0;
      let byte = this.#held;
      for (; this.#heldCount > 0; this.#heldCount--) {
        this.bytes[this.size++] = byte + carry;
        byte = 0xff;
      }
      this.#held = (this.#low >>> 24) & 0xff;
    }
    this.#heldCount += 1;
    this.#low = (this.#low & 0xff_ffff) * 256;
  }
}
