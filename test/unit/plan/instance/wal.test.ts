import { describe, expect, test } from "vitest";
import {
  planRestoreOutcome,
  planWalArchive,
  planWalRestore,
  recoveryPatienceMs,
  type WalRestorePurpose,
  type WalSourceAnswer,
  type WalView,
} from "../../../../src/plan/instance/wal.ts";

const view: WalView = {
  me: "c-1",
  current: "c-1",
  target: "c-1",
  replicaCluster: false,
  archiver: { kind: "none" },
};
const store = { kind: "objectStore" } as const;
const plugin = { kind: "plugin", plugin: "p" } as const;

describe("archive", () => {
  test.each<[string, Partial<WalView>, object]>([
    ["nothing is configured", {}, { kind: "skip", unconfigured: true }],
    ["an object store", { archiver: store }, { kind: "archive", by: store }],
    ["a plugin", { archiver: plugin }, { kind: "archive", by: plugin }],
    [
      "a switchover is under way",
      { current: "c-2", archiver: plugin },
      { kind: "refuse", level: "warning", reason: "switchover in progress, refusing archiving" },
    ],
    [
      "no primary is known",
      { current: "", archiver: plugin },
      { kind: "refuse", level: "warning", reason: "switchover in progress, refusing archiving" },
    ],
    [
      "a standby of a replica cluster",
      { replicaCluster: true, current: "c-2", target: "c-2", archiver: store },
      { kind: "skip", unconfigured: false },
    ],
    [
      "a replica cluster's designated primary to be",
      { replicaCluster: true, current: "c-2", archiver: store },
      { kind: "refuse" },
    ],
    ["a replica cluster's designated primary", { replicaCluster: true, archiver: store }, { kind: "archive" }],
  ])("%s", (_name, change, expected) => {
    expect(planWalArchive({ ...view, ...change })).toMatchObject(expected);
  });
});

describe("restore", () => {
  const sources = { plugins: ["p"], objectStore: true };
  const request = { ...view, current: "c-2", target: "c-2", name: "0000000A.history", clusterTimeline: 3, sources };

  test.each<[string, Partial<typeof request>, object]>([
    ["a future timeline's history on a standby", {}, { kind: "notFound" }],
    ["the same in lower case", { name: "0000000a.history" }, { kind: "notFound" }],
    ["on the current primary", { current: "c-1" }, { kind: "restore", sources }],
    ["on the target primary", { target: "c-1" }, { kind: "restore", sources }],
    ["of the cluster's own timeline", { clusterTimeline: 10 }, { kind: "restore", sources }],
    ["while the cluster's timeline is unknown", { clusterTimeline: 0 }, { kind: "restore", sources }],
    ["a segment of a future timeline", { name: "0000000A0000000000000001" }, { kind: "restore", sources }],
    [
      "no source at all",
      { name: "000000030000000000000001", sources: { plugins: [], objectStore: false } },
      { kind: "notFound", reason: "backup not configured" },
    ],
  ])("%s", (_name, change, expected) => {
    expect(planWalRestore({ ...request, ...change })).toMatchObject(expected);
  });
});

describe("what PostgreSQL is told", () => {
  type Row = [string, WalSourceAnswer[], WalRestorePurpose, number, object];
  test.each<Row>([
    ["one source had it", ["unknown", "restored"], "recovery", 0, { kind: "answer", code: 0 }],
    ["none was asked", [], "recovery", 0, { kind: "answer", code: 1 }],
    ["certainly nowhere", ["absent", "absent"], "recovery", 0, { kind: "answer", code: 1 }],
    ["the archive's end for now", ["endOfWal"], "standby", 0, { kind: "answer", code: 1 }],
    ["a standby asks again by itself", ["unknown"], "standby", 0, { kind: "answer", code: 1 }],
    ["a rewind is started again as a whole", ["unknown"], "rewind", 0, { kind: "answer", code: 1 }],
    ["a recovery waits", ["absent", "unknown"], "recovery", 0, { kind: "retry", delayMs: 500 }],
    ["and is aborted, never ended", ["unknown"], "recovery", recoveryPatienceMs, { kind: "answer", code: 126 }],
  ])("%s", (_name, answers, purpose, elapsedMs, expected) => {
    expect(planRestoreOutcome({ answers, purpose, elapsedMs, attempts: 1 })).toEqual(expected);
  });

  test("the waits grow, up to a bound", () => {
    const delay = (attempts: number) =>
      planRestoreOutcome({ answers: ["unknown"], purpose: "recovery", elapsedMs: 0, attempts });
    expect([1, 2, 5, 50].map(delay)).toEqual([500, 1000, 8000, 15_000].map((delayMs) => ({ kind: "retry", delayMs })));
  });
});
