import type { Clock } from "../../src/ports/clock.ts";

interface Sleeper {
  at: number;
  order: number;
  wake(): void;
}

/** A clock that stands still until a test moves it. */
export interface FakeClock extends Clock {
  /** Lets time pass, waking each sleeper at its own moment and letting its work finish before the next one wakes. */
  advance(ms: number): Promise<void>;
  /** Lets everything run that needs no time. */
  settle(): Promise<void>;
  /** Sets the wall clock alone, as an administrator or a time server does. */
  setWallClock(ms: number): void;
  /** Sleepers that wait. */
  readonly sleeping: number;
}

/** Creates a clock; the wall clock starts at the given time. */
export function createFakeClock(startMs = Date.parse("2026-01-01T00:00:00Z")): FakeClock {
  const sleepers = new Set<Sleeper>();
  let monotonic = 0;
  let wallOffset = startMs;
  let order = 0;

  const settle = async () => {
    // Chains of promises may be long and may include one pass through the event loop.
    for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const nextSleeper = (until: number) => {
    let next: Sleeper | undefined;
    for (const sleeper of sleepers) {
      if (sleeper.at > until) continue;
      if (!next || sleeper.at < next.at || (sleeper.at === next.at && sleeper.order < next.order)) next = sleeper;
    }
    return next;
  };

  return {
    now: () => Math.floor(wallOffset + monotonic),
    monotonicMs: () => monotonic,
    sleep(ms, signal) {
      return new Promise<void>((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const abort = () => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        const sleeper: Sleeper = {
          at: monotonic + Math.max(0, ms),
          order: order++,
          wake() {
            signal?.removeEventListener("abort", abort);
            resolve();
          },
        };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", abort, { once: true });
      });
    },
    async advance(ms) {
      const until = monotonic + ms;
      await settle();
      for (let next = nextSleeper(until); next; next = nextSleeper(until)) {
        monotonic = Math.max(monotonic, next.at);
        sleepers.delete(next);
        next.wake();
        await settle();
      }
      monotonic = until;
    },
    settle,
    setWallClock: (ms) => {
      wallOffset = ms - monotonic;
    },
    get sleeping() {
      return sleepers.size;
    },
  };
}
