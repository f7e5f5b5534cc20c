import { describe, expect, test } from "vitest";
import type { Backup } from "../../../../src/api/generated/backup.ts";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import {
  backupCompleted,
  backupFailed,
  backupNameOf,
  inTreeRunning,
  inTreeWaiting,
  planBackupStart,
  staleInTreeBackups,
  withRecoveryWindow,
} from "../../../../src/plan/instance/backup.ts";

const configuration = { destinationPath: "s3://b/", data: { encryption: "AES256" as const } };
const archive = { configuration, serverName: "c", field: "spec.backup.barmanObjectStore" };
const now = Date.parse("2026-01-02T03:04:05.678Z");

function cluster(spec: Partial<Cluster["spec"]>): Cluster {
  return { metadata: { name: "c" }, spec } as Cluster;
}

function backup(spec: Partial<Backup["spec"]>, status: Backup["status"] = {}): Backup {
  return { metadata: { name: "b" }, spec: { cluster: { name: "c" }, ...spec }, status } as Backup;
}

test("a backup that waits for an archive says whether that fails, and loses nothing else", () => {
  const running = inTreeRunning({ method: "barmanObjectStore" }, archive, "backup-1");
  expect(inTreeWaiting(running, true)).toEqual({ ...running, phase: "walArchivingFailing" });
  expect(inTreeWaiting(inTreeWaiting(running, true), false)).toEqual(running);
});

describe("start", () => {
  const withStore = cluster({ backup: { barmanObjectStore: configuration } });
  const silenced = {
    ...withStore,
    metadata: { name: "c", annotations: { "cnpg.io/skipWalArchiving": "enabled" } },
  } as Cluster;
  test.each<[string, Cluster, Backup, object]>([
    ["the store is the default", withStore, backup({}), { kind: "inTree", archive }],
    [
      "nothing that could never be restored",
      silenced,
      backup({}),
      { kind: "refuse", status: 409, message: expect.stringContaining("cnpg.io/skipWalArchiving") },
    ],
    ["one that runs already is followed to its end", silenced, backup({}, { phase: "running" }), { kind: "inTree" }],
    ["no store", cluster({}), backup({ method: "barmanObjectStore" }), { kind: "refuse", status: 409 }],
    [
      "a plugin, with the Backup's own parameters",
      cluster({ plugins: [{ name: "p", parameters: { from: "cluster" } }] }),
      backup({ method: "plugin", pluginConfiguration: { name: "p", parameters: { a: "b" } } }),
      { kind: "plugin", plugin: "p", parameters: { a: "b" } },
    ],
    ["a plugin without a name", withStore, backup({ method: "plugin" }), { kind: "refuse", status: 400 }],
    ["not the pod's work", withStore, backup({ method: "volumeSnapshot" }), { kind: "refuse", status: 400 }],
  ])("%s", (_name, given, wanted, expected) => {
    expect(planBackupStart(given, wanted)).toMatchObject(expected);
  });
});

describe("status", () => {
  const done = {
    backupId: "20260102T030405",
    backupName: "backup-20260102030405",
    startedAtMs: now,
    stoppedAtMs: undefined,
    beginWal: "000000010000000000000002",
    endWal: "",
    beginLsn: "0/2000028",
    endLsn: "",
  };

  test("running: where it goes is copied", () => {
    expect(inTreeRunning({ phase: "started", instanceID: { podName: "c-1" } }, archive, backupNameOf(now))).toEqual({
      phase: "running",
      method: "barmanObjectStore",
      instanceID: { podName: "c-1" },
      backupName: "backup-20260102030405",
      destinationPath: "s3://b/",
      serverName: "c",
      encryption: "AES256",
    });
  });

  test("completed: what is not known is left out, never a zero, and old errors go", () => {
    expect(backupCompleted({ phase: "running", error: "old" }, done, now)).toEqual({
      phase: "completed",
      backupId: "20260102T030405",
      backupName: "backup-20260102030405",
      startedAt: "2026-01-02T03:04:05Z",
      beginWal: "000000010000000000000002",
      beginLSN: "0/2000028",
      reconciliationTerminatedAt: "2026-01-02T03:04:05Z",
    });
  });

  test("a plugin's bytes and metadata", () => {
    const status = backupCompleted(
      {},
      { ...done, online: false, backupLabelFile: Buffer.from("x"), metadata: { k: "v" } },
      now,
    );
    expect(status).toMatchObject({ online: false, backupLabelFile: "eA==", pluginMetadata: { k: "v" } });
    expect(status.tablespaceMapFile).toBeUndefined();
  });

  test("failed", () => {
    expect(backupFailed({ phase: "running" }, "no route", now)).toMatchObject({ phase: "failed", error: "no route" });
  });
});

test("the Cluster's window: first of all methods, last of all methods", () => {
  const at = (text: string) => Date.parse(text);
  const first = withRecoveryWindow(
    {},
    {
      method: "plugin",
      firstRecoverabilityPointMs: at("2026-01-02T00:00:00Z"),
      lastSuccessfulBackupMs: at("2026-01-03T00:00:00Z"),
    },
  );
  const both = withRecoveryWindow(first, {
    method: "barmanObjectStore",
    firstRecoverabilityPointMs: at("2026-01-01T00:00:00Z"),
    lastSuccessfulBackupMs: at("2026-01-01T12:00:00Z"),
  });
  expect(both).toEqual({
    firstRecoverabilityPointByMethod: { plugin: "2026-01-02T00:00:00Z", barmanObjectStore: "2026-01-01T00:00:00Z" },
    lastSuccessfulBackupByMethod: { plugin: "2026-01-03T00:00:00Z", barmanObjectStore: "2026-01-01T12:00:00Z" },
    firstRecoverabilityPoint: "2026-01-01T00:00:00Z",
    lastSuccessfulBackup: "2026-01-03T00:00:00Z",
  });
  const none = { firstRecoverabilityPointMs: undefined, lastSuccessfulBackupMs: undefined };
  const gone = withRecoveryWindow(withRecoveryWindow(both, { method: "barmanObjectStore", ...none }), {
    method: "plugin",
    ...none,
  });
  expect(gone).toEqual({});
  expect(withRecoveryWindow(gone, { method: "plugin", ...none })).toBe(gone);
});

test("only completed backups of this very archive are stale when their data is gone", () => {
  const status = { phase: "completed", destinationPath: "s3://b/", serverName: "c", backupId: "1" };
  const rows: [Backup, boolean][] = [
    [backup({}, status), true],
    [backup({}, { ...status, backupId: "2" }), false],
    [backup({}, { ...status, phase: "running" }), false],
    [backup({}, { ...status, serverName: "other" }), false],
    [backup({}, { ...status, endpointURL: "http://elsewhere" }), false],
    [backup({}, { ...status, method: "plugin" }), false],
    [backup({ cluster: { name: "d" } }, status), false],
  ];
  for (const [object, stale] of rows) {
    expect(staleInTreeBackups("c", archive, [object], new Set(["2"]))).toEqual(stale ? [object] : []);
  }
});
