import { expect, test } from "vitest";
import type { Backup } from "../../../../src/api/generated/backup.ts";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { firstRequiredWal, readPluginWindow } from "../../../../src/plan/instance/plugin-window.ts";

const first = "barman_cloud_cloudnative_pg_io_first_recoverability_point";
const last = "barman_cloud_cloudnative_pg_io_last_available_backup_timestamp";

test.each<[string, { name: string; value: number }[], object | undefined]>([
  ["another plugin", [{ name: "other", value: 1 }], undefined],
  ["half of it", [{ name: first, value: 1 }], undefined],
  [
    "an empty archive",
    [
      { name: first, value: 0 },
      { name: last, value: 0 },
    ],
    { method: "plugin", firstRecoverabilityPointMs: undefined, lastSuccessfulBackupMs: undefined },
  ],
  [
    "a window",
    [
      { name: first, value: 10 },
      { name: last, value: 20 },
    ],
    { method: "plugin", firstRecoverabilityPointMs: 10_000, lastSuccessfulBackupMs: 20_000 },
  ],
])("%s", (_name, samples, expected) => {
  expect(readPluginWindow(samples)).toEqual(expected);
});

const plugin = "barman-cloud.cloudnative-pg.io";
const cluster = { metadata: { name: "c", uid: "u" }, spec: {} } as unknown as Cluster;
const aBackup = (beginWal: string | undefined, changes: { status?: object; spec?: object } = {}) =>
  ({
    metadata: { name: "b" },
    spec: { cluster: { name: "c" }, method: "plugin", pluginConfiguration: { name: plugin }, ...changes.spec },
    status: { phase: "completed", ...(beginWal === undefined ? {} : { beginWal }), ...changes.status },
  }) as Backup;
const wal = (timeline: number, segment: number) =>
  `0000000${timeline}00000000000000${segment.toString(16).padStart(2, "0").toUpperCase()}`;

test.each<[string, Backup[], string | undefined]>([
  ["no backup", [], undefined],
  [
    "the oldest by position, whatever its timeline",
    [aBackup(wal(2, 9)), aBackup(wal(1, 10)), aBackup(wal(3, 12))],
    wal(2, 9),
  ],
  ["only such as are complete", [aBackup(wal(1, 2), { status: { phase: "failed" } }), aBackup(wal(1, 5))], wal(1, 5)],
  ["none of another cluster", [aBackup(wal(1, 2), { spec: { cluster: { name: "other" } } })], undefined],
  [
    "none of a cluster of that name that is gone",
    [aBackup(wal(1, 2), { status: { pluginMetadata: { clusterUID: "before" } } }), aBackup(wal(1, 6))],
    wal(1, 6),
  ],
  ["none of another plugin", [aBackup(wal(1, 2), { spec: { pluginConfiguration: { name: "other" } } })], undefined],
  ["nothing while one does not say what it needs", [aBackup(undefined), aBackup(wal(1, 6))], undefined],
])("what the oldest backup needs: %s", (_name, backups, expected) => {
  expect(firstRequiredWal(cluster, plugin, backups)).toBe(expected);
});
