import { describe, expect, test } from "vitest";
import { type LeaseRecord, planLease } from "../../../../src/plan/instance/lease.ts";
import { binds } from "../../../../src/plan/instance/promise.ts";
import { isReleasedBy, parseReleaseNotice, type ReleaseNotice } from "../../../../src/plan/instance/release-notice.ts";

const record: LeaseRecord = {
  holder: "c-1",
  renewTime: "t7",
  transitions: 3,
  durationSeconds: 15,
  voters: { voters: ["c-1", "c-2", "c-3"], holderUID: "u1" },
};
const notice: ReleaseNotice = {
  cluster: "ns/c",
  holder: "c-1",
  holderUID: "u1",
  transitions: 3,
  renewTimes: ["t7", "t8"],
};

describe("isReleasedBy", () => {
  test.each<[string, Partial<LeaseRecord>, boolean]>([
    ["the record that it names", {}, true],
    ["a write whose outcome the holder did not know", { renewTime: "t8" }, true],
    ["a later renewal of the same pod", { renewTime: "t9" }, false],
    ["another tenure of the same pod", { transitions: 4 }, false],
    ["another holder", { holder: "c-2" }, false],
    ["another pod of the same name", { voters: { voters: ["c-1"], holderUID: "u2" } }, false],
    ["a record that names no pod", { voters: undefined }, false],
  ])("%s", (_, change, released) => {
    expect(isReleasedBy(notice, { ...record, ...change })).toBe(released);
  });

  test("nothing was told, or nothing was read", () => {
    expect(isReleasedBy(undefined, record)).toBe(false);
    expect(isReleasedBy(notice, undefined)).toBe(false);
  });
});

describe("a promise to a holder that says it is down", () => {
  const grant = { holder: "c-1", holderUID: "u1", transitions: 3, until: 1_000 };
  test("does not bind any more", () => {
    expect(binds(grant, record, 0, notice)).toBe(false);
  });
  test("binds again once the holder has renewed", () => {
    expect(binds(grant, { ...record, renewTime: "t9" }, 0, notice)).toBe(true);
  });
  test("binds when it was given for another tenure", () => {
    expect(binds({ ...grant, transitions: 2 }, record, 0, notice)).toBe(true);
  });
});

describe("a candidate that was told", () => {
  const view = {
    me: "c-2",
    myUid: "u9",
    record,
    heldBefore: false,
    ownTransitions: undefined,
    unchangedMs: 0,
    rightHeld: false,
    leaseDurationMs: 15_000,
    currentPrimary: "c-1",
    clusterOfOne: false,
    promisedMs: 0,
    toldReleased: true,
  };
  test("claims at once", () => {
    expect(planLease(view)).toMatchObject({ kind: "claim" });
  });
  test("waits when it is no voter, when it promised somebody time, or when nothing was told", () => {
    expect(planLease({ ...view, me: "c-4" })).toMatchObject({ kind: "refuse" });
    expect(planLease({ ...view, promisedMs: 5 })).toMatchObject({ kind: "wait" });
    expect(planLease({ ...view, toldReleased: false })).toMatchObject({ kind: "wait" });
  });
});

test("only whole notices are read", () => {
  expect(parseReleaseNotice(JSON.stringify(notice))).toEqual(notice);
  for (const change of [
    { holder: "" },
    { holderUID: 1 },
    { transitions: 1.5 },
    { renewTimes: "t7" },
    { renewTimes: [1] },
    { renewTimes: Array.from({ length: 33 }, String) },
  ]) {
    expect(parseReleaseNotice(JSON.stringify({ ...notice, ...change }))).toBeNull();
  }
  for (const text of ["", "null", "[]", "{"]) expect(parseReleaseNotice(text)).toBeNull();
});
