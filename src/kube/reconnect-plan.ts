import { backoffDelayMs } from "../runtime/backoff.ts";

/** How the last list or watch of a store ended. */
export type StoreOutcome =
  /** The server ended the watch, as it does after its time-out. */
  | { kind: "ended"; livedMs: number }
  /** The version to go on from is too old. */
  | { kind: "gone" }
  | { kind: "failed"; livedMs: number; answered: boolean; retryAfterMs?: number | undefined };

export interface ReconnectState {
  /** Failures in a row. */
  failures: number;
  /** Failures in a row that were answers of a server. */
  refusals: number;
}

export interface ReconnectDecision {
  delayMs: number;
  relist: boolean;
  state: ReconnectState;
}

/** A watch that lived this long proves that the server is well again. */
const healthyMs = 5_000;
/** So often may a server refuse to go on from our version before we ask for everything anew. */
const refusalsBeforeRelist = 5;

const backoff = { baseMs: 500, maxMs: 5_000, jitter: 0.3 };

/** Where a store goes on after a list or watch ended, and when. */
export function planReconnect(outcome: StoreOutcome, state: ReconnectState, random: number): ReconnectDecision {
  if (outcome.kind === "ended" && outcome.livedMs >= healthyMs) {
    return { delayMs: 200 * random, relist: false, state: { failures: 0, refusals: 0 } };
  }
  const healthy = outcome.kind === "failed" && outcome.livedMs >= healthyMs;
  const failures = healthy ? 1 : state.failures + 1;
  const answered = outcome.kind === "failed" && outcome.answered;
  const refusals = answered ? (healthy ? 1 : state.refusals + 1) : state.refusals;
  const relist = outcome.kind === "gone" || refusals >= refusalsBeforeRelist;
  const asked = outcome.kind === "failed" ? (outcome.retryAfterMs ?? 0) : 0;
  const delayMs = Math.max(backoffDelayMs(failures, backoff, random), Math.min(asked, 60_000));
  return { delayMs, relist, state: { failures, refusals: relist ? 0 : refusals } };
}
