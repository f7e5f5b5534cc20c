/** Cuts a stream of chunks into pieces of asked length. */
export class ExactReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = new Uint8Array();

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** `undefined` when the stream ended right before; fails when it ends in the middle. */
  async take(length: number): Promise<Uint8Array | undefined> {
    if (this.#chunk.length >= length) return this.#cut(length);
    const parts: Uint8Array[] = [];
    let missing = length;
    while (missing > 0) {
      if (this.#chunk.length === 0) {
        const next = await this.#chunks.next();
        if (next.done) {
          if (missing === length) return undefined;
          throw new Error("the stream ends in the middle");
        }
        this.#chunk = next.value;
        continue;
      }
      const part = this.#cut(Math.min(missing, this.#chunk.length));
      parts.push(part);
      missing -= part.length;
    }
    return Buffer.concat(parts);
  }

  async need(length: number): Promise<Uint8Array> {
    const bytes = length === 0 ? new Uint8Array() : await this.take(length);
    if (!bytes) throw new Error("the stream ends early");
    return bytes;
  }

  async close(): Promise<void> {
    await this.#chunks.return?.(undefined);
  }

  #cut(length: number): Uint8Array {
    const part = this.#chunk.subarray(0, length);
    this.#chunk = this.#chunk.subarray(length);
    return part;
  }
}
