import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LeaseSpec } from "../../../src/api/generated/kubernetes.ts";
import {
  formatMicroTime,
  type LeaseObservation,
  observeLease,
  planLease,
  releasedLease,
} from "../../../src/kube/lease-decision.ts";

const timings = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 };
const held: LeaseSpec = {
  holderIdentity: "other",
  renewTime: "2026-01-01T00:00:00.000000Z",
  leaseDurationSeconds: 15,
  leaseTransitions: 4,
};

function decide(spec: LeaseSpec | undefined, unchangedMs = 0) {
  const observation = observeLease(undefined, spec, 0);
  return planLease({
    spec,
    identity: "me",
    observation,
    nowMs: unchangedMs,
    wallMs: Date.parse("2026-01-01T00:01:00Z"),
    timings,
  });
}

describe("planLease", () => {
  it("takes a Lease that does not exist", () => {
    expect(decide(undefined)).toEqual({
      action: "acquire",
      reason: "it does not exist",
      spec: {
        holderIdentity: "me",
        leaseDurationSeconds: 15,
        acquireTime: "2026-01-01T00:01:00.000000Z",
        renewTime: "2026-01-01T00:01:00.000000Z",
        leaseTransitions: 0,
      },
    });
  });

  it("takes a released one at once and counts the transition", () => {
    expect(decide(releasedLease(held, 0))).toMatchObject({
      action: "acquire",
      spec: { holderIdentity: "me", leaseTransitions: 5 },
    });
  });

  it("waits for a foreign holder as long as the record was not seen unchanged for its whole duration", () => {
    expect(decide(held, 14_999)).toEqual({ action: "wait", reason: "other holds it" });
    expect(decide(held, 15_000)).toMatchObject({ action: "acquire", spec: { leaseTransitions: 5 } });
    expect(decide({ ...held, leaseDurationSeconds: 60 }, 59_999).action).toBe("wait");
    expect(decide({ ...held, leaseDurationSeconds: 1 }, 14_999).action).toBe("wait");
  });

  it("renews its own without touching what others wrote there", () => {
    const own: LeaseSpec = { ...held, holderIdentity: "me", acquireTime: "2025-12-31T00:00:00.000000Z", strategy: "x" };
    expect(decide(own)).toMatchObject({
      action: "renew",
      spec: { ...own, renewTime: "2026-01-01T00:01:00.000000Z" },
    });
  });

  it("does not trust the holder's clock", () => {
    const future: LeaseSpec = { ...held, renewTime: "2099-01-01T00:00:00.000000Z" };
    const past: LeaseSpec = { ...held, renewTime: "1999-01-01T00:00:00.000000Z" };
    expect(decide(future, 15_000).action).toBe("acquire");
    expect(decide(past, 14_000).action).toBe("wait");
  });
});

describe("observeLease", () => {
  it("keeps the time of the first sight while the record stays, and starts anew when it changes", () => {
    const first = observeLease(undefined, held, 100);
    expect(observeLease(first, held, 900)).toBe(first);
    expect(observeLease(first, { ...held, renewTime: "2026-01-01T00:00:02.000000Z" }, 900).sinceMs).toBe(900);
    expect(observeLease(first, undefined, 900)).toEqual({ record: "absent", sinceMs: 900 });
  });
});

describe("formatMicroTime", () => {
  it("has six digits", () => {
    expect(formatMicroTime(Date.parse("2026-11-30T00:09:18.739Z"))).toBe("2026-11-30T00:09:18.739000Z");
  });
});

it("never has two leaders, whatever the delays of reads and writes, while clocks run equally fast", () => {
  const step = fc.record({
    who: fc.constantFrom("a", "b", "c"),
    waitMs: fc.nat(4_000),
    writeMs: fc.nat(3_000),
    lost: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let spec: LeaseSpec | undefined;
      let version = 0;
      let now = 0;
      const seen = new Map<string, LeaseObservation>();
      const leadsUntil = new Map<string, number>();
      for (const { who, waitMs, writeMs, lost } of steps) {
        now += waitMs;
        const began = now;
        const readVersion = version;
        const observation = observeLease(seen.get(who), spec, now);
        seen.set(who, observation);
        const decision = planLease({ spec, identity: who, observation, nowMs: now, wallMs: now, timings });
        if (decision.action === "wait") {
          leadsUntil.delete(who);
          continue;
        }
        now += writeMs;
        expect(readVersion).toBe(version);
        spec = decision.spec;
        version++;
        // The answer may be lost although the write was done; then the right is not counted from it.
        if (!lost) leadsUntil.set(who, began + timings.renewDeadlineMs);
        const leaders = [...leadsUntil].filter(([, until]) => until > now).map(([name]) => name);
        expect(leaders.length).toBeLessThanOrEqual(1);
      }
    }),
  );
});
