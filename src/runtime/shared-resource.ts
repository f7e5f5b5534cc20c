/** One long-lived thing at a time, made anew when what it was made from changes; the old one ends once nobody uses it. */
export class SharedResource<T> {
  readonly #close: (value: T) => Promise<void>;
  #current: { fingerprint: string; value: Promise<T>; users: Set<Promise<unknown>> } | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(close: (value: T) => Promise<void>) {
    this.#close = close;
  }

  /** Runs the work with the thing for this fingerprint. A new one is made only when the old one is gone. */
  async use<R>(fingerprint: string, make: () => Promise<T>, work: (value: T) => Promise<R>): Promise<R> {
    if (this.#current?.fingerprint !== fingerprint) this.#replace({ fingerprint, make });
    const current = this.#current;
    if (!current) throw new Error("the resource was closed while it was made");
    const running = current.value.then(work);
    const settled = running.catch(() => undefined);
    current.users.add(settled);
    void settled.then(() => current.users.delete(settled));
    try {
      await current.value;
    } catch {
      // The next caller tries again.
      if (this.#current === current) this.#current = undefined;
    }
    return running;
  }

  /** Ends the thing, once its users have ended. */
  async close(): Promise<void> {
    this.#replace(undefined);
    await this.#last;
  }

  #replace(next: { fingerprint: string; make: () => Promise<T> } | undefined): void {
    const previous = this.#current;
    const before = this.#last;
    const gone = (async () => {
      await before;
      const value = await previous?.value.catch(() => undefined);
      await Promise.allSettled(previous?.users ?? []);
      if (value !== undefined) await this.#close(value);
    })();
    this.#last = gone;
    this.#current = next && { fingerprint: next.fingerprint, value: gone.then(next.make), users: new Set() };
    this.#current?.value.catch(() => undefined);
  }
}
