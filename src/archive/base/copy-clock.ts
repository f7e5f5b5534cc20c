import type { CopyStats } from "../../barman/copy-stats.ts";
import type { Clock } from "../../ports/clock.ts";

/** Measures how long the copy of each folder takes. */
export class CopyClock {
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #seconds: Record<string, number> = {};

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
  }

  async measure<T>(item: string, work: () => Promise<T>): Promise<T> {
    const start = this.#clock.monotonicMs();
    const result = await work();
    this.#seconds[item] = (this.#clock.monotonicMs() - start) / 1000;
    return result;
  }

  stats(workers: number): CopyStats {
    const copyTime = Object.values(this.#seconds).reduce((sum, seconds) => sum + seconds, 0);
    return {
      totalTime: (this.#clock.monotonicMs() - this.#startMs) / 1000,
      workers,
      copyTimePerItem: this.#seconds,
      serializedCopyTimePerItem: this.#seconds,
      copyTime,
      serializedCopyTime: copyTime,
    };
  }
}
