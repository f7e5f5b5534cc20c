import { describe, expect, test } from "vitest";
import {
  isHarder,
  planEscalation,
  planStop,
  type StopCause,
  type StopView,
} from "../../../../src/plan/instance/shutdown.ts";

const base: StopView = {
  cause: "signal",
  isPrimary: true,
  stopDelayMs: 1_800_000,
  smartShutdownMs: 180_000,
  switchoverDelayMs: 3_600_000,
};

describe("planStop", () => {
  test.each<[StopCause, string[], boolean]>([
    ["signal", ["smart", "fast", "immediate"], true],
    ["forced", ["fast", "immediate"], false],
    ["restart", ["smart", "fast", "immediate"], true],
    ["switchover", ["fast", "immediate"], true],
    ["fence", ["fast", "immediate"], true],
    ["failover", ["fast", "immediate"], false],
    ["isolated", ["fast", "immediate"], false],
    ["leaseLost", ["immediate"], false],
    ["error", ["fast", "immediate"], true],
  ])("%s", (cause, modes, checkpoint) => {
    const plan = planStop({ ...base, cause });
    expect(plan.steps.map((step) => step.mode)).toEqual(modes);
    expect(plan.checkpointMs > 0).toBe(checkpoint);
  });

  test("all steps of a signal fit into the grace period", () => {
    for (const stopDelayMs of [1_000, 30_000, 181_000, 1_800_000]) {
      const { steps } = planStop({ ...base, stopDelayMs });
      const total = steps.reduce((sum, step) => sum + (step.limitMs ?? 0), 0);
      expect(total).toBeLessThanOrEqual(Math.max(2_000, stopDelayMs));
    }
  });

  test("a grace period no longer than the smart phase skips it", () => {
    const { steps } = planStop({ ...base, stopDelayMs: 180_000 });
    expect(steps[0]?.mode).toBe("fast");
  });

  test("a standby gets no checkpoint", () => {
    expect(planStop({ ...base, isPrimary: false }).checkpointMs).toBe(0);
  });
});

describe("isHarder", () => {
  const forced = planStop({ ...base, cause: "forced" });
  test.each<[string, Parameters<typeof isHarder>[1], boolean]>([
    ["than a smart stop", { mode: "smart", limitMs: 1_000 }, true],
    ["than a fast stop with an hour", { mode: "fast", limitMs: 3_600_000 }, true],
    ["than a fast stop without a limit", { mode: "fast", limitMs: undefined }, true],
    ["but not than itself", { mode: "fast", limitMs: 900 }, false],
    ["nor than an immediate stop", { mode: "immediate", limitMs: undefined }, false],
  ])("a forced stop is harder %s", (_, under, harder) => {
    expect(isHarder(forced, under)).toBe(harder);
  });

  test("a failover does not loosen a forced stop", () => {
    expect(isHarder(planStop({ ...base, cause: "failover" }), { mode: "fast", limitMs: 900 })).toBe(false);
  });

  test("a standby that is deleted by force stops as always", () => {
    expect(planStop({ ...base, cause: "forced", isPrimary: false })).toEqual(planStop({ ...base, isPrimary: false }));
  });
});

describe("planEscalation", () => {
  const view = {
    mode: "smart",
    isPrimary: true,
    me: "c-1",
    target: { kind: "instance", name: "c-1" },
    leaseLost: false,
    isolated: false,
  } as const;
  test.each([
    ["nothing changed", {}, undefined],
    ["a failover began", { target: { kind: "pending" } }, "fast"],
    ["another target", { target: { kind: "instance", name: "c-2" } }, "fast"],
    ["another target, already fast", { mode: "fast", target: { kind: "pending" } }, undefined],
    ["another target, but a standby", { isPrimary: false, target: { kind: "pending" } }, undefined],
    ["lease lost", { mode: "fast", leaseLost: true }, "immediate"],
    ["isolated", { isolated: true }, "fast"],
    ["already immediate", { mode: "immediate", leaseLost: true }, undefined],
  ] as const)("%s", (_name, change, expected) => {
    expect(planEscalation({ ...view, ...change })?.mode).toBe(expected);
  });
});
