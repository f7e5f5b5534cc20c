/** Lets a bounded number of pieces of work run at once; those with `urgent` go before the others. */
export class Lanes {
  #free: number;
  readonly #urgent: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = Math.max(1, count);
  }

  async run<T>(work: () => Promise<T>, options: { urgent?: boolean } = {}): Promise<T> {
    await this.#enter(options.urgent ?? false);
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  #enter(urgent: boolean): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve();
    }
    return new Promise((resolve) => (urgent ? this.#urgent : this.#waiting).push(resolve));
  }

  #leave(): void {
    const next = this.#urgent.shift() ?? this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}
