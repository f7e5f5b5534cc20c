import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { BackupCatalog } from "../../barman/catalog.ts";
import { readPluginConfiguration } from "../framework/configuration.ts";
import { checkOwnStore, readClusterStores, type StoreReference } from "./cluster-stores.ts";
import { pluginName } from "./identity.ts";

/** What the worker does this time. */
export type MaintenanceDecision =
  | { kind: "maintain"; store: StoreReference }
  /** Nothing to do here; `role`: because another pod is the primary, which may change at any time. */
  | { kind: "skip"; because: "disabled" | "role"; reason: string }
  | { kind: "refuse"; reason: string };

/** Only the current primary looks after the archive. */
export function planMaintenance(cluster: Cluster, podName: string): MaintenanceDecision {
  if (!readPluginConfiguration(cluster, pluginName).enabled) {
    return { kind: "skip", because: "disabled", reason: "the plugin is not enabled in spec.plugins" };
  }
  const { own } = readClusterStores(cluster);
  if (!own) return { kind: "refuse", reason: checkOwnStore(cluster) ?? "no ObjectStore is named" };
  const current = cluster.status?.currentPrimary ?? "";
  if (current !== podName) {
    return { kind: "skip", because: "role", reason: `the current primary is ${current || "not known"}` };
  }
  return { kind: "maintain", store: own };
}

/** Backups of this very cluster whose data is no longer in the archive: their objects say something untrue. */
export function staleBackups(cluster: Cluster, backups: readonly Backup[], catalog: BackupCatalog): Backup[] {
  const present = new Set([...catalog.backups, ...catalog.unreadable].map(({ id }) => id));
  return backups.filter(({ spec, status }) => {
    const metadata = status?.pluginMetadata;
    return (
      spec.cluster.name === cluster.metadata.name &&
      status?.phase === "completed" &&
      status.method === "plugin" &&
      metadata?.["clusterUID"] === cluster.metadata.uid &&
      metadata?.["pluginName"] === pluginName &&
      status.backupId !== undefined &&
      !present.has(status.backupId)
    );
  });
}
