import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  compileLeaseTimings,
  type LeaseDecision,
  type LeaseView,
  outdatedWish,
  planLease,
  planVoters,
} from "../../../../src/plan/instance/lease.ts";

const voters = { voters: ["c-1", "c-2"], holderUID: "uid-2" };
const heldByOther = { holder: "c-2", renewTime: "t", transitions: 3, durationSeconds: 15, voters };
const base: LeaseView = {
  me: "c-1",
  myUid: "uid-1",
  record: heldByOther,
  heldBefore: false,
  ownTransitions: undefined,
  unchangedMs: 0,
  rightHeld: false,
  leaseDurationMs: 15_000,
  currentPrimary: "c-2",
  clusterOfOne: false,
  promisedMs: 0,
  toldReleased: false,
};
const mine = { ...heldByOther, holder: "c-1", voters: { ...voters, holderUID: "uid-1" } };
const released = { ...heldByOther, holder: "" };
const fresh = { holder: "", renewTime: "", transitions: 0, durationSeconds: 0, voters: undefined };

const table: [string, Partial<LeaseView>, LeaseDecision["kind"]][] = [
  ["held by another, just renewed", {}, "wait"],
  ["held by another, silent for a while", { unchangedMs: 14_999 }, "wait"],
  ["held by another, silent for the duration", { unchangedMs: 15_000 }, "claim"],
  [
    "holder runs with a longer duration",
    { record: { ...heldByOther, durationSeconds: 60 }, unchangedMs: 15_000 },
    "wait",
  ],
  ["mine", { record: mine }, "renew"],
  ["mine, from before a restart of the container", { record: mine }, "renew"],
  ["a former pod of my name", { record: { ...mine, voters: { ...voters, holderUID: "old" } } }, "wait"],
  [
    "a former pod of my name, silent",
    { record: { ...mine, voters: { ...voters, holderUID: "old" } }, unchangedMs: 15_000 },
    "claim",
  ],
  [
    "a former pod of my name in a cluster of one",
    { record: { ...mine, voters: { ...voters, holderUID: "old" } }, clusterOfOne: true },
    "renew",
  ],
  ["my name, written by a peer that knows no UIDs", { record: { ...mine, voters: undefined } }, "renew"],
  ["released", { record: released }, "claim"],
  ["released by a peer without voters", { record: { ...released, voters: undefined } }, "claim"],
  ["released, but I am no voter", { record: { ...released, voters: { voters: ["c-2"], holderUID: "" } } }, "refuse"],
  [
    "silent, but I am no voter",
    { record: { ...heldByOther, voters: { voters: ["c-2"], holderUID: "" } }, unchangedMs: 99_000 },
    "refuse",
  ],
  ["new lease on first boot", { record: fresh, currentPrimary: "" }, "claim"],
  ["new lease while another is current", { record: fresh }, "refuse"],
  ["new lease, a person named me, just seen", { record: fresh, named: true, unchangedMs: 14_999 }, "wait"],
  ["new lease, a person named me", { record: fresh, named: true, unchangedMs: 15_000 }, "claim"],
  ["new lease, a person named me, but I promised time", { record: fresh, named: true, promisedMs: 1 }, "wait"],
  [
    "no voter is left and a person named me, but the holder may still write",
    { record: { ...heldByOther, voters: { voters: ["c-2"], holderUID: "" } }, named: true, unchangedMs: 14_999 },
    "wait",
  ],
  [
    "no voter is left and a person named me",
    { record: { ...heldByOther, voters: { voters: ["c-2"], holderUID: "" } }, named: true, unchangedMs: 15_000 },
    "claim",
  ],
  [
    "no voter is left, the lease was given back and a person named me",
    { record: { ...released, voters: { voters: ["c-2"], holderUID: "" } }, named: true },
    "claim",
  ],
  ["new lease, I am current and hold the right", { record: fresh, currentPrimary: "c-1", rightHeld: true }, "claim"],
  ["new lease, I am current and held it once", { record: fresh, currentPrimary: "c-1", heldBefore: true }, "wait"],
  ["new lease, I am current and see it new", { record: fresh, currentPrimary: "c-1", unchangedMs: 14_999 }, "wait"],
  [
    "new lease, I am current and wait long enough",
    { record: fresh, currentPrimary: "c-1", unchangedMs: 15_000 },
    "claim",
  ],
  ["new lease in a cluster of one", { record: fresh, currentPrimary: "c-1", clusterOfOne: true }, "claim"],
  ["new lease while another is current, but the right is mine", { record: fresh, rightHeld: true }, "claim"],
  ["new lease, the right is mine, but I promised time", { record: fresh, rightHeld: true, promisedMs: 1 }, "wait"],
  ["taken from me", { heldBefore: true }, "lost"],
  ["taken from me and released since", { record: released, heldBefore: true, ownTransitions: 2 }, "lost"],
  ["released for an adopted primary by somebody", { record: released, heldBefore: true }, "lost"],
  ["released on my behalf", { record: released, heldBefore: true, ownTransitions: 3 }, "claim"],
  [
    "made anew while I held it",
    { record: fresh, currentPrimary: "c-1", heldBefore: true, ownTransitions: 3, rightHeld: true },
    "claim",
  ],
  ["taken from me, silent since", { heldBefore: true, unchangedMs: 99_000 }, "lost"],
];

describe("planLease", () => {
  test.each(table)("%s", (_name, view, expected) => {
    expect(planLease({ ...base, ...view }).kind).toBe(expected);
  });

  test("a wait tells how long it is at most", () => {
    expect(planLease({ ...base, unchangedMs: 14_000 })).toMatchObject({ kind: "wait", afterMs: 1_000 });
  });

  test("nobody claims what another renewed less than a duration ago", () => {
    fc.assert(
      fc.property(
        fc.nat(14_999),
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        (unchangedMs, heldBefore, clusterOfOne, rightHeld) => {
          const decision = planLease({ ...base, unchangedMs, heldBefore, clusterOfOne, rightHeld });
          expect(["claim", "renew"]).not.toContain(decision.kind);
        },
      ),
    );
  });
});

describe("outdatedWish", () => {
  const wish = { current: "c-1", target: "c-1" };
  test.each([
    ["nothing changed", wish, undefined],
    [
      "another is to be primary",
      { current: "c-1", target: "c-2" },
      /current primary is c-1 and the target primary c-2/,
    ],
    ["another was primary in between", { current: "c-2", target: "c-1" }, /current primary is c-2/],
    ["nobody is chosen yet", { current: "c-1", target: "pending" }, /target primary pending/],
    ["the status was lost", { current: "", target: "" }, /current primary is nobody/],
  ])("%s", (_name, live, expected) => {
    const reason = outdatedWish(wish, live);
    if (expected === undefined) expect(reason).toBeUndefined();
    else expect(reason).toMatch(expected);
  });
});

describe("planVoters", () => {
  test.each([
    ["first boot", { listed: [], instanceNames: ["c-1"], active: [] }, ["c-1"]],
    ["a joined instance comes in", { listed: ["c-1"], instanceNames: ["c-1", "c-2"], active: ["c-2"] }, ["c-1", "c-2"]],
    ["one that only has a volume stays out", { listed: ["c-1"], instanceNames: ["c-1", "c-2"], active: [] }, ["c-1"]],
    [
      "a failed one stays in",
      { listed: ["c-1", "c-2"], instanceNames: ["c-1", "c-2"], active: ["c-1"] },
      ["c-1", "c-2"],
    ],
    ["a removed one goes", { listed: ["c-1", "c-2"], instanceNames: ["c-1"], active: ["c-1", "c-2"] }, ["c-1"]],
    [
      "nobody goes while the Cluster is not known",
      { listed: ["c-1", "c-2"], instanceNames: undefined, active: [] },
      ["c-1", "c-2"],
    ],
    ["the holder is always in", { listed: [], instanceNames: [], active: [] }, ["c-1"]],
  ])("%s", (_name, view, expected) => {
    expect(planVoters({ me: "c-1", ...view })).toEqual(expected);
  });
});

test("timings have the reference's defaults", () => {
  const defaults = {
    leaseDurationMs: 15_000,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 2_000,
    releasedDurationSeconds: 1,
  };
  expect(compileLeaseTimings(undefined)).toEqual(defaults);
  expect(compileLeaseTimings({ leaseDurationSeconds: 30 })).toEqual({ ...defaults, leaseDurationMs: 30_000 });
});

test("who has promised time to the holder waits, whatever the Lease says", () => {
  for (const record of [heldByOther, released, fresh, mine])
    expect(planLease({ ...base, record, unchangedMs: 60_000, promisedMs: 3_000 })).toMatchObject({
      kind: "wait",
      afterMs: 3_000,
    });
});
