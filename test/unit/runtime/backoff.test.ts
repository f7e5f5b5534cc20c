import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { backoffDelayMs, planRetry, retry } from "../../../src/runtime/backoff.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createSeededRandom } from "../../support/seeded-random.ts";

describe("backoffDelayMs", () => {
  it.each([
    [1, 5],
    [2, 10],
    [3, 20],
    [18, 655_360],
    [19, 1_000_000],
    [5_000, 1_000_000],
  ])("after failure %i waits %i ms", (failures, delay) => {
    expect(backoffDelayMs(failures, { baseMs: 5, maxMs: 1_000_000 })).toBe(delay);
  });

  it("never shrinks with more failures and stays within its bounds", () => {
    const options = fc.record({
      baseMs: fc.nat(1000),
      maxMs: fc.integer({ min: 1000, max: 1_000_000 }),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(
        options,
        fc.integer({ min: 1, max: 200 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (given, failures, random) => {
          const delay = backoffDelayMs(failures, given, random);
          expect(delay).toBeGreaterThanOrEqual(0);
          expect(delay).toBeLessThanOrEqual(given.maxMs);
          expect(backoffDelayMs(failures + 1, given, random)).toBeGreaterThanOrEqual(delay);
        },
      ),
    );
  });
});

describe("planRetry", () => {
  const policy = { baseMs: 100, maxMs: 1000, maxAttempts: 3, maxElapsedMs: 5000 };
  it.each([
    [
      "a final failure",
      { attempts: 1, elapsedMs: 0, retryable: false },
      { retry: false, reason: "the failure is final" },
    ],
    ["the last attempt", { attempts: 3, elapsedMs: 0, retryable: true }, { retry: false, reason: "3 attempts failed" }],
    ["a first failure", { attempts: 1, elapsedMs: 0, retryable: true }, { retry: true, delayMs: 100 }],
    [
      "a longer wish of the server",
      { attempts: 1, elapsedMs: 0, retryable: true, retryAfterMs: 3000 },
      { retry: true, delayMs: 3000 },
    ],
    [
      "a shorter wish of the server",
      { attempts: 2, elapsedMs: 0, retryable: true, retryAfterMs: 1 },
      { retry: true, delayMs: 200 },
    ],
    [
      "no time left",
      { attempts: 1, elapsedMs: 4950, retryable: true },
      { retry: false, reason: "no attempt is left within 5000 ms" },
    ],
  ])("decides on %s", (_name, attempt, expected) => {
    expect(planRetry(attempt, policy)).toEqual(expected);
  });
});

describe("retry", () => {
  it("repeats until success and waits as planned", async () => {
    const clock = createFakeClock();
    const times: number[] = [];
    const result = retry(
      async (attempt) => {
        times.push(clock.monotonicMs());
        if (attempt < 3) throw new Error("not yet");
        return "done";
      },
      { policy: { baseMs: 100, maxMs: 1000, maxAttempts: 5 }, clock, random: createSeededRandom() },
    );
    await clock.advance(1000);
    expect(await result).toBe("done");
    expect(times).toEqual([0, 100, 300]);
  });

  it("throws the operation's own error when it gives up, and the signal's reason when aborted", async () => {
    const clock = createFakeClock();
    const random = createSeededRandom();
    const policy = { baseMs: 100, maxMs: 1000, maxAttempts: 5 };
    const final = new Error("final");
    const fail = async () => {
      throw final;
    };
    await expect(retry(fail, { policy, clock, random, classify: () => ({ retryable: false }) })).rejects.toBe(final);
    const stop = new AbortController();
    const waiting = retry(fail, { policy, clock, random, signal: stop.signal });
    waiting.catch(() => undefined);
    await clock.settle();
    const reason = new Error("stopping");
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });
});
