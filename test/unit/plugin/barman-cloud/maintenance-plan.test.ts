import { describe, expect, test } from "vitest";
import type { Backup } from "../../../../src/api/generated/backup.ts";
import { planMaintenance, staleBackups } from "../../../../src/plugin/barman-cloud/maintenance-plan.ts";
import { aBackup, aCatalog } from "../../../support/backup-catalog.ts";
import { anArchivedCluster, barmanPlugin } from "../../../support/barman-cloud-objects.ts";

const entry = (fields: object) => ({ plugins: [{ name: barmanPlugin, ...fields }] });
const own = { parameters: { barmanObjectName: "own" } };

describe("who looks after the archive", () => {
  test.each([
    ["the current primary does", own, "orders-1", "maintain"],
    ["another pod does not", own, "orders-2", "skip"],
    ["nobody while there is no primary", own, "", "skip"],
    ["nobody when the plugin is disabled", { ...own, enabled: false }, "orders-1", "skip"],
    ["an enabled plugin without a store is a mistake", {}, "orders-1", "refuse"],
  ])("%s", (_, fields, currentPrimary, kind) => {
    expect(planMaintenance(anArchivedCluster(entry(fields), { currentPrimary }), "orders-1").kind).toBe(kind);
  });
});

describe("Backups whose data is gone", () => {
  const cluster = anArchivedCluster();
  const good = { clusterUID: "uid-orders", pluginName: barmanPlugin };
  const backup = (name: string, status: Backup["status"] = {}, clusterName = "orders"): Backup => ({
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { name },
    spec: { cluster: { name: clusterName } },
    status: { phase: "completed", method: "plugin", backupId: "20260101T000000", pluginMetadata: good, ...status },
  });
  const catalog = aCatalog([aBackup("20260501T020000")], [{ id: "20260502T020000", reason: "unreadable" }]);

  test.each([
    ["one that the catalog does not hold", backup("a"), true],
    ["one that it holds", backup("b", { backupId: "20260501T020000" }), false],
    ["one whose folder cannot be read", backup("c", { backupId: "20260502T020000" }), false],
    ["one that runs", backup("d", { phase: "started" }), false],
    ["one of another method", backup("e", { method: "volumeSnapshot" }), false],
    ["one of an earlier cluster of that name", backup("f", { pluginMetadata: { ...good, clusterUID: "old" } }), false],
    ["one of another plugin", backup("g", { pluginMetadata: { ...good, pluginName: "other" } }), false],
    ["one of another cluster", backup("h", {}, "other"), false],
  ])("%s", (_, object, stale) => {
    expect(staleBackups(cluster, [object], catalog)).toEqual(stale ? [object] : []);
  });
});
