import type { Clock, Random } from "../ports/clock.ts";

/** How delays grow. */
export interface BackoffOptions {
  /** Delay before the second attempt. */
  baseMs: number;
  maxMs: number;
  /** @default 2 */
  factor?: number;
  /** Share of the delay that is random, 0 to 1: the delay lies in [1 - jitter, 1] of the computed one. @default 0 */
  jitter?: number;
}

/** Delay after failure number `failures` (1 for the first); `random` in [0, 1) decides the jitter. */
export function backoffDelayMs(failures: number, options: BackoffOptions, random = 0): number {
  const factor = options.factor ?? 2;
  const exponent = Math.max(0, failures - 1);
  // Large exponents overflow to Infinity, which the minimum brings back to the cap.
  const delay = Math.min(options.maxMs, options.baseMs * factor ** exponent);
  return delay * (1 - (options.jitter ?? 0) * random);
}

/** When to give up. */
export interface RetryPolicy extends BackoffOptions {
  /** Attempts in all; 1 means no retry. */
  maxAttempts: number;
  /** No further attempt starts later than this after the first one began. */
  maxElapsedMs?: number;
}

/** What a failed attempt tells the decider. */
export interface FailedAttempt {
  /** Attempts made so far, the failed one included. */
  attempts: number;
  elapsedMs: number;
  /** False when no repetition can help. */
  retryable: boolean;
  /** Least delay that the far side asked for. */
  retryAfterMs?: number | undefined;
}

export type RetryDecision = { retry: true; delayMs: number } | { retry: false; reason: string };

/** Whether, and after which delay, to try again. */
export function planRetry(attempt: FailedAttempt, policy: RetryPolicy, random = 0): RetryDecision {
  if (!attempt.retryable) return { retry: false, reason: "the failure is final" };
  if (attempt.attempts >= policy.maxAttempts) return { retry: false, reason: `${attempt.attempts} attempts failed` };
  const delayMs = Math.max(backoffDelayMs(attempt.attempts, policy, random), attempt.retryAfterMs ?? 0);
  if (policy.maxElapsedMs !== undefined && attempt.elapsedMs + delayMs > policy.maxElapsedMs) {
    return { retry: false, reason: `no attempt is left within ${policy.maxElapsedMs} ms` };
  }
  return { retry: true, delayMs };
}

export interface RetryOptions {
  policy: RetryPolicy;
  clock: Clock;
  random: Random;
  signal?: AbortSignal;
  /** Classifies a failure. @default every failure may be repeated */
  classify?: (error: unknown) => { retryable: boolean; retryAfterMs?: number | undefined };
}

/** Runs the operation until it succeeds or the policy gives up; then the last error is thrown as it is. */
export async function retry<T>(operation: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const started = options.clock.monotonicMs();
  for (let attempts = 1; ; attempts++) {
    options.signal?.throwIfAborted();
    try {
      return await operation(attempts);
    } catch (error) {
      options.signal?.throwIfAborted();
      const { retryable, retryAfterMs } = options.classify?.(error) ?? { retryable: true };
      const elapsedMs = options.clock.monotonicMs() - started;
      const decision = planRetry(
        { attempts, elapsedMs, retryable, retryAfterMs },
        options.policy,
        options.random.float(),
      );
      if (!decision.retry) throw error;
      await options.clock.sleep(decision.delayMs, options.signal);
    }
  }
}
