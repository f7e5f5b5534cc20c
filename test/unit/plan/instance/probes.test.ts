import { describe, expect, test } from "vitest";
import {
  checkStreaming,
  formatProbeAnswer,
  type LivenessView,
  planLiveness,
  planProbeShortcut,
} from "../../../../src/plan/instance/probes.ts";

describe("planLiveness", () => {
  const base: LivenessView = {
    isPrimary: true,
    apiReachable: false,
    clusterKnown: true,
    isolationCheck: true,
    instances: 3,
    peers: [
      { name: "c-2", reachable: false },
      { name: "c-3", reachable: false },
    ],
  };
  const answer = (change: Partial<LivenessView>) => {
    const decision = planLiveness({ ...base, ...change });
    return decision.kind === "answer" ? decision.answer.status : decision.kind;
  };
  test.each<[string, Partial<LivenessView>, number | string]>([
    ["API server and all peers away", {}, 500],
    [
      "one peer answers",
      {
        peers: [
          { name: "c-2", reachable: false },
          { name: "c-3", reachable: true },
        ],
      },
      200,
    ],
    ["peers not asked yet", { peers: undefined }, "askPeers"],
    ["no peer is known", { peers: [] }, 200],
    ["API server answers", { apiReachable: true, peers: undefined }, 200],
    ["standby", { isPrimary: false }, 200],
    ["role unknown", { isPrimary: undefined }, 200],
    ["no Cluster was ever read", { clusterKnown: false }, 200],
    ["check turned off", { isolationCheck: false }, 200],
    ["a cluster of one", { instances: 1 }, 200],
  ])("%s", (_name, change, expected) => {
    expect(answer(change)).toBe(expected);
  });
  test("the text names the peers", () => {
    const decision = planLiveness(base);
    expect(decision).toMatchObject({ isolated: true, answer: { body: expect.stringContaining("c-2, c-3") } });
  });
});

describe("planProbeShortcut", () => {
  const base = { mightBeUnavailable: false, rewinding: false, postmasterRunning: true };
  test.each([
    ["startup" as const, { mightBeUnavailable: true }, "Skipped"],
    ["startup" as const, { rewinding: true }, "Skipped"],
    ["startup" as const, { postmasterRunning: false }, undefined],
    ["readiness" as const, { postmasterRunning: false }, "instance is not ready yet"],
    ["readiness" as const, { mightBeUnavailable: true }, undefined],
  ])("%s %o", (kind, change, expected) => {
    expect(planProbeShortcut({ kind, ...base, ...change })?.body).toBe(expected);
  });
});

test("probe answers name the probe", () => {
  expect(formatProbeAnswer("readiness", undefined)).toEqual({ status: 200, body: "OK" });
  expect(formatProbeAnswer("startup", "why")).toEqual({ status: 500, body: "startup check failed: why" });
});

describe("checkStreaming", () => {
  const base = {
    isPrimary: false,
    hasPrimaryConninfo: true,
    lagBytes: 10n as bigint | undefined,
    maximumLagBytes: 100n as bigint | undefined,
    latestEndTime: "t",
  };
  test.each([
    ["in time", {}, undefined],
    ["exactly at the limit", { lagBytes: 100n }, undefined],
    ["too late", { lagBytes: 101n }, "replica lagging"],
    ["no limit", { lagBytes: 1_000_000n, maximumLagBytes: undefined }, undefined],
    ["no receiver", { lagBytes: undefined }, "not connected"],
    ["primary", { isPrimary: true, lagBytes: undefined }, undefined],
    ["nothing to follow", { hasPrimaryConninfo: false, lagBytes: undefined }, undefined],
  ])("%s", (_name, change, expected) => {
    const reason = checkStreaming({ ...base, ...change });
    if (expected === undefined) expect(reason).toBeUndefined();
    else expect(reason).toContain(expected);
  });
});
