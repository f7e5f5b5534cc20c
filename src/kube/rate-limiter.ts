import type { Clock } from "../ports/clock.ts";

export interface RateLimiterOptions {
  perSecond: number;
  /** Tokens that can gather. */
  burst: number;
  clock: Clock;
}

/** A token bucket. */
export interface RateLimiter {
  /** Waits for a token, first come first served; a wait that is aborted still uses its token. */
  take(signal?: AbortSignal): Promise<void>;
  /** Takes a token if one is there now. */
  tryTake(): boolean;
  /** Takes tokens without waiting; later takers wait longer. */
  charge(tokens: number): void;
}

/** Creates a full bucket. */
export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { clock, perSecond, burst } = options;
  let tokens = burst;
  let filledAt = clock.monotonicMs();
  const refill = () => {
    const now = clock.monotonicMs();
    tokens = Math.min(burst, tokens + ((now - filledAt) / 1000) * perSecond);
    filledAt = now;
  };
  return {
    async take(signal) {
      signal?.throwIfAborted();
      refill();
      tokens--;
      // A negative balance is a reservation: the n-th waiter sleeps until its own token has been filled in.
      if (tokens < 0) await clock.sleep((-tokens / perSecond) * 1000, signal);
    },
    tryTake() {
      refill();
      if (tokens < 1) return false;
      tokens--;
      return true;
    },
    charge(count) {
      refill();
      tokens -= count;
    },
  };
}
