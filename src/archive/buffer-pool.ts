const leastPooledBytes = 1024 * 1024;

/**
 * Large buffers that are used again: a new one for every segment costs page faults, and what the collector gives back late
 * counts against the container's limit. Pages that were never written to take no memory.
 */
export class BufferPool {
  readonly #free: Buffer[] = [];
  readonly #keep: number;

  /** `keep`: buffers held while nobody uses them. */
  constructor(keep: number) {
    this.#keep = keep;
  }

  /** A buffer of at least that many bytes, with whatever they hold. */
  take(bytes: number): Buffer {
    const at = this.#free.findIndex((buffer) => buffer.length >= bytes);
    const [found] = at < 0 ? [] : this.#free.splice(at, 1);
    return found ?? Buffer.allocUnsafeSlow(bytes);
  }

  give(buffer: Buffer): void {
    // Small ones cost nothing, and would only take the place of large ones.
    if (buffer.length >= leastPooledBytes && this.#free.length < this.#keep) this.#free.push(buffer);
  }
}
