import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import { ObjectStoreError } from "../../ports/object-store.ts";

const firstPauseMs = 1_000;
const longestPauseMs = 30_000;

export interface StorePatienceDeps {
  clock: Clock;
  logger: Logger;
  /** Sum of the pauses between the tries of one request. */
  patienceMs: number;
  signal: AbortSignal;
}

/** Waits out what may pass: hours of copying must not be lost because a store is away for a minute. */
export class StorePatience {
  readonly #deps: StorePatienceDeps;

  constructor(deps: StorePatienceDeps) {
    this.#deps = deps;
  }

  /** Says, after a pause, whether a request that failed so many times is worth another try. */
  readonly again = async (error: unknown, failures: number): Promise<boolean> => {
    const { clock, logger, patienceMs, signal } = this.#deps;
    const passing = error instanceof ObjectStoreError && (error.kind === "unavailable" || error.kind === "corrupt");
    const pauseMs = pauseAfter(failures);
    if (!passing || signal.aborted || waitedBefore(failures) + pauseMs > patienceMs) return false;
    logger.warning("a request of the base backup failed and is tried again", { err: error.message, failures, pauseMs });
    await clock.sleep(pauseMs, signal);
    return true;
  };

  async run<T>(work: () => Promise<T>): Promise<T> {
    for (let failures = 1; ; failures++) {
      try {
        return await work();
      } catch (error) {
        if (!(await this.again(error, failures))) throw error;
      }
    }
  }
}

function pauseAfter(failures: number): number {
  return Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs);
}

function waitedBefore(failures: number): number {
  let sum = 0;
  for (let failure = 1; failure < failures; failure++) sum += pauseAfter(failure);
  return sum;
}
