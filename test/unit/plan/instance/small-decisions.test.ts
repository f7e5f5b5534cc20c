import { describe, expect, test } from "vitest";
import {
  type BootstrapTargetView,
  formatFolderTimestamp,
  planBootstrapTarget,
} from "../../../../src/plan/instance/bootstrap-target.ts";
import { planFencing } from "../../../../src/plan/instance/fencing.ts";
import { type PasswordWish, planPasswords } from "../../../../src/plan/instance/passwords.ts";
import {
  type PendingRestartView,
  planPendingRestart,
  reportsPendingRestart,
} from "../../../../src/plan/instance/pending-restart.ts";
import { errorDelayMs, resyncMs } from "../../../../src/plan/instance/requeue.ts";
import { planKeptWal, planRewind, type RewindDecision, type RewindView } from "../../../../src/plan/instance/rewind.ts";

test.each([
  [false, false, "none"],
  [true, false, "fence"],
  [true, true, "none"],
  [false, true, "unfence"],
] as const)("fencing: annotated %s, fenced %s", (annotated, fenced, expected) => {
  expect(planFencing({ annotated, fenced })).toBe(expected);
});

describe("planBootstrapTarget", () => {
  const now = Date.UTC(2026, 10, 30, 1, 2, 3);
  const nothing: BootstrapTargetView = {
    data: "absent",
    controlFile: "absent",
    wal: "absent",
    unfinishedCopy: false,
    started: false,
    now,
  };
  const valid = { data: "valid", controlFile: "filled" } as const;
  test.each<[string, Partial<BootstrapTargetView>, string, string]>([
    ["nothing there", {}, "none", "none"],
    ["what is data is renamed", { ...valid, wal: "filled" }, "rename", "rename"],
    ["what can't be data is removed", { data: "refused", wal: "filled" }, "remove", "remove"],
    ["an empty control file is none", { data: "refused", controlFile: "empty" }, "remove", "none"],
    ["a control file that is refused may be someone's", { data: "refused", controlFile: "filled" }, "rename", "none"],
    ["WAL without its data folder is renamed", { wal: "filled" }, "none", "rename"],
    ["an empty WAL folder is in nobody's way", { wal: "empty" }, "none", "none"],
    ["an unfinished copy is removed", { ...valid, wal: "filled", unfinishedCopy: true }, "remove", "remove"],
    ["the rest of one too", { wal: "filled", unfinishedCopy: true }, "none", "remove"],
    ["a copy that ran is data", { ...valid, unfinishedCopy: true, started: true }, "rename", "none"],
  ])("%s", (_name, change, data, wal) => {
    const plan = planBootstrapTarget({ ...nothing, ...change });
    expect([plan.data.kind, plan.wal.kind]).toEqual([data, wal]);
  });
  test("the suffix tells the time", () => {
    expect(planBootstrapTarget({ ...nothing, ...valid }).data).toMatchObject({ suffix: "20261130t010203Z" });
  });
  test("the suffix has the form of the original", () => {
    expect(formatFolderTimestamp(now)).toMatch(/^\d{8}t\d{6}Z$/);
  });
});

describe("planRewind", () => {
  const clean: RewindView = {
    cleanShutdown: true,
    timeline: 1,
    checkpoint: 100n,
    primaryTimeline: 2,
    primaryPosition: 300n,
    switchPoint: 228n,
    sameHistory: undefined,
  };
  test.each<[string, Partial<RewindView>, RewindDecision["kind"]]>([
    ["orderly switchover", {}, "follow"],
    ["crashed", { cleanShutdown: false }, "rewind"],
    ["crashed on the same timeline", { cleanShutdown: false, primaryTimeline: 1 }, "rewind"],
    ["same timeline", { primaryTimeline: 1, switchPoint: undefined }, "follow"],
    ["same timeline and history", { primaryTimeline: 1, sameHistory: true }, "follow"],
    ["same number, other history", { primaryTimeline: 1, sameHistory: false }, "clone"],
    ["crashed, same number, other history", { primaryTimeline: 1, sameHistory: false, cleanShutdown: false }, "clone"],
    ["same timeline, ahead of the primary", { primaryTimeline: 1, primaryPosition: 99n }, "clone"],
    ["the last record was not replayed", { switchPoint: 100n }, "rewind"],
    ["wrote past the switch", { switchPoint: 50n }, "rewind"],
    ["foreign history", { switchPoint: undefined }, "rewind"],
  ])("%s", (_name, change, expected) => {
    expect(planRewind({ ...clean, ...change }).kind).toBe(expected);
  });
});

describe("planKeptWal", () => {
  const view = {
    archives: true,
    archiveStatus: [
      "000000020000000000000004.ready",
      "000000020000000000000003.done",
      "00000002.history.ready",
      "gone.ready",
    ],
    present: ["000000020000000000000003", "000000020000000000000004", "00000002.history", "archive_status"],
  };
  test("what waits for the archiver is kept, what it has or nobody has is not", () => {
    expect(planKeptWal(view)).toEqual(["00000002.history", "000000020000000000000004"]);
  });
  test("without an archiver nothing is kept", () => {
    expect(planKeptWal({ ...view, archives: false })).toEqual([]);
  });
});

describe("planPendingRestart", () => {
  const base: PendingRestartView = {
    pending: true,
    decrease: false,
    actingPrimary: true,
    instances: 3,
    updateStrategy: "unsupervised",
    phase: "Cluster in healthy state",
  };
  test.each<[string, Partial<PendingRestartView>, object]>([
    ["nothing pending", { pending: false }, { kind: "none" }],
    ["primary of several: the replicas go first", {}, { kind: "none" }],
    ["primary alone", { instances: 1 }, { kind: "setPhase", phase: "Applying configuration" }],
    ["replica", { actingPrimary: false }, { kind: "setPhase", reason: "PostgreSQL configuration changed" }],
    ["phase set already", { actingPrimary: false, phase: "Applying configuration" }, { kind: "none" }],
    ["decrease on the primary", { decrease: true }, { kind: "restart", phase: "Applying configuration" }],
    [
      "decrease, supervised",
      { decrease: true, updateStrategy: "supervised" },
      { kind: "setPhase", phase: "Waiting for user action", reason: "User must issue a supervised switchover" },
    ],
    ["decrease on a replica", { decrease: true, actingPrimary: false }, { kind: "setPhase" }],
  ])("%s", (_name, change, expected) => {
    expect(planPendingRestart({ ...base, ...change })).toMatchObject(expected);
  });

  const report = { pending: true, decrease: true, isPrimary: false, replicaCluster: false, controlHigher: true };
  test.each([
    ["replica before the primary's restart", {}, false],
    ["replica, control file unreadable", { controlHigher: undefined }, false],
    ["replica after the primary's restart", { controlHigher: false }, true],
    ["replica with an increase", { decrease: false }, true],
    ["primary", { isPrimary: true }, true],
    ["replica cluster", { replicaCluster: true }, true],
    ["nothing pending", { pending: false }, false],
  ])("reports: %s", (_name, change, expected) => {
    expect(reportsPendingRestart({ ...report, ...change })).toBe(expected);
  });
});

describe("planPasswords", () => {
  const app: PasswordWish = { kind: "secret", user: "app", password: "p", passthrough: false, version: "7" };
  const none: PasswordWish = { kind: "none", user: "postgres" };
  test("applies what is new", () => {
    expect(planPasswords({ canWrite: true, wishes: [app, none], applied: new Map() })).toEqual([app, none]);
  });
  test("leaves what is applied", () => {
    const applied = new Map([
      ["app", "7"],
      ["postgres", ""],
    ]);
    expect(planPasswords({ canWrite: true, wishes: [app, none], applied })).toEqual([]);
  });
  test("applies a new version", () => {
    expect(planPasswords({ canWrite: true, wishes: [app], applied: new Map([["app", "6"]]) })).toEqual([app]);
  });
  test("does nothing where nothing can be written", () => {
    expect(planPasswords({ canWrite: false, wishes: [app], applied: new Map() })).toEqual([]);
  });
});

test("errors are retried soon at first and never later than the next pass anyway", () => {
  expect([1, 2, 3].map(errorDelayMs)).toEqual([250, 500, 1_000]);
  expect(errorDelayMs(50)).toBe(resyncMs);
});
