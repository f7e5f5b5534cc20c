import type { Clock } from "../../ports/clock.ts";

/** Sleeps of one loop that others may end early, and waits of others for what the loop changes. */
export class Alarm {
  readonly #clock: Clock;
  #wake: (() => void) | undefined;
  /** Woken while it did not sleep: what it is about to sleep on may be decided by what was before. */
  #missed = false;
  #waiters = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the sleep of the loop, or the next one. */
  wake(): void {
    if (this.#wake) this.#wake();
    else this.#missed = true;
  }

  /** Sleeps, in milliseconds, unless someone wakes it or has done so since the last sleep. */
  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    const missed = this.#missed;
    this.#missed = false;
    if (missed) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await this.#clock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
    this.#wake = undefined;
  }

  /** Something changed that others wait for. */
  changed(): void {
    const waiters = this.#waiters;
    this.#waiters = new Set();
    for (const waiter of waiters) waiter();
  }

  /** Resolves at the next change, after the time in milliseconds at the latest. */
  async nextChange(ms: number, signal: AbortSignal): Promise<void> {
    const changed = new AbortController();
    const waiter = () => changed.abort();
    this.#waiters.add(waiter);
    await this.#clock.sleep(ms, AbortSignal.any([signal, changed.signal])).catch(() => undefined);
    this.#waiters.delete(waiter);
  }
}
