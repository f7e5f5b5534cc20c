// XXH32, the checksum of LZ4 frames.
import { viewOf } from "./find-matches.ts";

const primes = [2654435761, 2246822519, 3266489917, 668265263, 374761393] as const;

/** Hash of bytes that come bit by bit. */
export class XxHash32 {
  readonly #lanes = Int32Array.of((primes[0] + primes[1]) | 0, primes[1] | 0, 0, -primes[0] | 0);
  readonly #held = new Uint8Array(16);
  #heldBytes = 0;
  #total = 0;

  update(bytes: Uint8Array): this {
    this.#total += bytes.length;
    let at = 0;
    if (this.#heldBytes > 0) {
      const taken = Math.min(16 - this.#heldBytes, bytes.length);
      this.#held.set(bytes.subarray(0, taken), this.#heldBytes);
      this.#heldBytes += taken;
      at = taken;
      if (this.#heldBytes < 16) return this;
      this.#stripes(this.#held, 0);
      this.#heldBytes = 0;
    }
    at = this.#stripes(bytes, at);
    this.#held.set(bytes.subarray(at), 0);
    this.#heldBytes = bytes.length - at;
    return this;
  }

  /** Unsigned. */
  digest(): number {
    const [a = 0, b = 0, c = 0, d = 0] = this.#lanes;
    let hash = this.#total >= 16 ? (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0 : primes[4] | 0;
    hash = (hash + this.#total) | 0;
    let at = 0;
    for (; at + 4 <= this.#heldBytes; at += 4) {
      hash = Math.imul(rotate((hash + Math.imul(word(this.#held, at), primes[2])) | 0, 17), primes[3]);
    }
    for (; at < this.#heldBytes; at++) {
      hash = Math.imul(rotate((hash + Math.imul(this.#held[at] ?? 0, primes[4])) | 0, 11), primes[0]);
    }
    hash = Math.imul(hash ^ (hash >>> 15), primes[1]);
    hash = Math.imul(hash ^ (hash >>> 13), primes[2]);
    return (hash ^ (hash >>> 16)) >>> 0;
  }

  /** Takes in whole stripes; returns where they end. */
  #stripes(bytes: Uint8Array, from: number): number {
    const view = viewOf(bytes);
    const [prime1, prime2] = primes;
    let [a = 0, b = 0, c = 0, d = 0] = this.#lanes;
    let at = from;
    for (; at + 16 <= bytes.length; at += 16) {
      a = Math.imul(rotate((a + Math.imul(view.getInt32(at, true), prime2)) | 0, 13), prime1);
      b = Math.imul(rotate((b + Math.imul(view.getInt32(at + 4, true), prime2)) | 0, 13), prime1);
      c = Math.imul(rotate((c + Math.imul(view.getInt32(at + 8, true), prime2)) | 0, 13), prime1);
      d = Math.imul(rotate((d + Math.imul(view.getInt32(at + 12, true), prime2)) | 0, 13), prime1);
    }
    this.#lanes.set([a, b, c, d]);
    return at;
  }
}

/** Hash of bytes at hand. */
export function xxHash32(bytes: Uint8Array): number {
  return new XxHash32().update(bytes).digest();
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function word(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24);
}
