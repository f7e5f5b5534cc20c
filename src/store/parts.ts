/**
 * Gathers chunks into pieces of exactly `partBytes`, the last one shorter; a stream without bytes yields nothing. Chunks are
 * copied at once, so that they and the piece they go into are not both held.
 */
export async function* gatherParts(
  source: AsyncIterable<Uint8Array>,
  partBytes: number,
  allocate: (bytes: number) => Uint8Array = (bytes) => Buffer.allocUnsafeSlow(bytes),
): AsyncGenerator<Uint8Array> {
  let part: Uint8Array | undefined;
  let filled = 0;
  for await (const chunk of source) {
    let rest = chunk;
    while (rest.length > 0) {
      if (filled === 0 && rest.length >= partBytes) {
        yield rest.subarray(0, partBytes);
        rest = rest.subarray(partBytes);
        continue;
      }
      // Pages that are never written to take no memory.
      part ??= allocate(partBytes);
      const taken = rest.subarray(0, partBytes - filled);
      part.set(taken, filled);
      filled += taken.length;
      rest = rest.subarray(taken.length);
      if (filled < partBytes) continue;
      const full = part;
      part = undefined;
      filled = 0;
      yield full;
    }
  }
  if (part && filled > 0) yield part.subarray(0, filled);
}

/** Buffers for the parts of one upload, used again: the collector gives large ones back late, which counts as memory until then. */
export class PartBuffers {
  readonly #free: Uint8Array[] = [];
  readonly #own = new WeakMap<ArrayBufferLike, Uint8Array>();

  take(bytes: number): Uint8Array {
    const free = this.#free.pop();
    if (free?.length === bytes) return free;
    const made = Buffer.allocUnsafeSlow(bytes);
    this.#own.set(made.buffer, made);
    return made;
  }

  /** For a part, or a piece of it, that nobody reads any more. */
  give(part: Uint8Array): void {
    const own = this.#own.get(part.buffer);
    if (own) this.#free.push(own);
  }
}

/** One buffer of several; a single one is passed on without a copy. */
export function join(chunks: readonly Uint8Array[]): Uint8Array {
  const [only] = chunks;
  return chunks.length === 1 && only ? only : Buffer.concat(chunks);
}
