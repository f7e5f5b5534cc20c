import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planReconnect, type ReconnectState, type StoreOutcome } from "../../../src/kube/reconnect-plan.ts";

const fresh: ReconnectState = { failures: 0, refusals: 0 };

describe("planReconnect", () => {
  it("goes on at once after a watch that the server ended in its time", () => {
    const decision = planReconnect({ kind: "ended", livedMs: 300_000 }, { failures: 4, refusals: 2 }, 0.5);
    expect(decision).toEqual({ delayMs: 100, relist: false, state: fresh });
  });

  it("lists anew when the version is gone", () => {
    expect(planReconnect({ kind: "gone" }, fresh, 0)).toMatchObject({ relist: true, delayMs: 500 });
  });

  it("waits longer with each failure, up to five seconds, and as long as the server asks within reason", () => {
    let state = fresh;
    const delays = [];
    for (let i = 0; i < 6; i++) {
      const decision = planReconnect({ kind: "failed", livedMs: 0, answered: false }, state, 0);
      delays.push(decision.delayMs);
      expect(decision.relist).toBe(false);
      state = decision.state;
    }
    expect(delays).toEqual([500, 1000, 2000, 4000, 5000, 5000]);
    const asked = (retryAfterMs: number) =>
      planReconnect({ kind: "failed", livedMs: 0, answered: true, retryAfterMs }, fresh, 0).delayMs;
    expect(asked(7_000)).toBe(7_000);
    expect(asked(3_600_000)).toBe(60_000);
  });

  it("treats a watch that is cut soon after its start as a failure", () => {
    expect(planReconnect({ kind: "ended", livedMs: 20 }, { failures: 3, refusals: 0 }, 0).delayMs).toBe(4000);
  });

  it("starts counting anew after a healthy watch broke", () => {
    expect(
      planReconnect({ kind: "failed", livedMs: 60_000, answered: false }, { failures: 9, refusals: 0 }, 0).delayMs,
    ).toBe(500);
  });

  it("asks for everything anew when a server keeps refusing to go on", () => {
    let state = fresh;
    const relists = [];
    for (let i = 0; i < 6; i++) {
      const decision = planReconnect({ kind: "failed", livedMs: 0, answered: true }, state, 0);
      relists.push(decision.relist);
      state = decision.state;
    }
    expect(relists).toEqual([false, false, false, false, true, false]);
  });

  it("never plans more than 30 attempts a minute while nothing lives long", () => {
    const outcome = fc.oneof<fc.Arbitrary<StoreOutcome>[]>(
      fc.constant({ kind: "gone" }),
      fc.record({ kind: fc.constant("ended" as const), livedMs: fc.nat(4_000) }),
      fc.record({ kind: fc.constant("failed" as const), livedMs: fc.nat(4_000), answered: fc.boolean() }),
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(outcome, fc.double({ min: 0, max: 0.999, noNaN: true })), { minLength: 100, maxLength: 100 }),
        (steps) => {
          let state = fresh;
          let time = 0;
          let attempts = 0;
          for (const [step, random] of steps) {
            const decision = planReconnect(step, state, random);
            state = decision.state;
            time += decision.delayMs;
            if (time <= 60_000) attempts++;
          }
          expect(attempts).toBeLessThanOrEqual(30);
        },
      ),
    );
  });
});
