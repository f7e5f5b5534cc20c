import { describe, expect, test } from "vitest";
import { planWalArchive, planWalRestore, type WalView } from "../../../../src/plan/instance/wal.ts";

const base: WalView = {
  me: "c-1",
  current: "c-1",
  target: "c-1",
  replicaCluster: false,
  archiverPlugin: undefined,
  objectStore: false,
};

describe("planWalArchive", () => {
  test.each<[string, Partial<WalView>, object]>([
    ["nothing is configured", {}, { kind: "skip" }],
    [
      "not the current primary",
      { current: "c-2" },
      { kind: "refuse", reason: "switchover in progress, refusing archiving" },
    ],
    ["first boot, nobody is current", { current: "" }, { kind: "refuse" }],
    ["not current although a store is set", { current: "c-2", objectStore: true }, { kind: "refuse" }],
    ["standby of a replica cluster", { replicaCluster: true, current: "c-2", target: "c-2" }, { kind: "skip" }],
    ["target of a replica cluster", { replicaCluster: true, current: "c-2" }, { kind: "refuse" }],
    ["plugin", { archiverPlugin: "p", objectStore: true }, { kind: "archive", by: "plugin", plugin: "p" }],
    ["object store", { objectStore: true }, { kind: "archive", by: "objectStore" }],
  ])("%s", (_name, change, expected) => {
    expect(planWalArchive({ ...base, ...change })).toMatchObject(expected);
  });
});

describe("planWalRestore", () => {
  const standby = {
    ...base,
    current: "c-2",
    target: "c-2",
    name: "000000010000000000000003",
    clusterTimeline: 2,
    restorePlugins: false,
  };
  test.each<[string, Partial<typeof standby>, object]>([
    ["nothing is configured", {}, { kind: "notFound", reason: "backup not configured" }],
    ["object store", { objectStore: true }, { kind: "restore", by: "objectStore" }],
    ["plugin first", { objectStore: true, restorePlugins: true }, { kind: "restore", by: "plugin" }],
    ["history of the future", { name: "00000003.history", objectStore: true }, { kind: "notFound" }],
    ["history of today", { name: "00000002.history", objectStore: true }, { kind: "restore" }],
    [
      "history of the future, as target",
      { name: "00000003.history", objectStore: true, target: "c-1" },
      { kind: "restore" },
    ],
    [
      "history of the future, timeline unknown",
      { name: "00000003.history", objectStore: true, clusterTimeline: 0 },
      { kind: "restore" },
    ],
    ["unreadable name passes", { name: "zzz.history", objectStore: true }, { kind: "restore" }],
  ])("%s", (_name, change, expected) => {
    expect(planWalRestore({ ...standby, ...change })).toMatchObject(expected);
  });
});
