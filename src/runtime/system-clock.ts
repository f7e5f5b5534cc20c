import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../ports/clock.ts";

/** Node clamps longer timers to 1 ms, so a long sleep is cut into pieces. */
const longestTimerMs = 2_000_000_000;

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  let rest = ms;
  do {
    signal?.throwIfAborted();
    const piece = Math.min(Math.max(rest, 0), longestTimerMs);
    try {
      await delay(piece, undefined, signal ? { signal } : {});
    } catch (error) {
      // The timers module wraps the reason in an AbortError; callers are promised the reason itself.
      signal?.throwIfAborted();
      throw error;
    }
    rest -= piece;
  } while (rest > 0);
}

/** The machine's clock. Its monotonic time does not advance while the machine is suspended. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep,
};

/**
 * As `systemClock`, but monotonic time counts from boot and includes suspension (10 ms resolution), which is what
 * leases and promises between machines must be measured with.
 */
export const bootClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => parseUptimeMs(readFileSync("/proc/uptime", "latin1")),
  sleep,
};

function parseUptimeMs(text: string): number {
  return Math.round(Number.parseFloat(text) * 1000);
}
