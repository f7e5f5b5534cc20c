// After an in-tree backup: what the policy no longer needs goes, and objects and Cluster say what is there (reference: backup §4.8).
import type { Cluster } from "../../api/generated/cluster.ts";
import { readCatalog } from "../../archive/archive-reader.ts";
import { runRetention } from "../../archive/retention-run.ts";
import { type BackupCatalog, computeRecoveryWindow } from "../../barman/catalog.ts";
import { parseRetentionPolicy } from "../../barman/retention.ts";
import { resources } from "../../kube/resources.ts";
import { staleInTreeBackups, withRecoveryWindow } from "../../plan/instance/backup.ts";
import type { InTreeArchive } from "../../plan/instance/wal-sources.ts";
import type { EventSink } from "../../ports/event-sink.ts";
import { isKubeError } from "../../ports/kube-api.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { ClusterStatusWriter } from "../reconcile/cluster-status.ts";
import type { ArchivePlaces, PlaceFacts } from "../wal/archive-places.ts";

export interface MaintenanceDeps {
  context: InstanceContext;
  places: ArchivePlaces;
  status: Pick<ClusterStatusWriter, "update">;
  events: EventSink;
}

/** One pass over the in-tree archive. */
export async function maintainArchive(
  deps: MaintenanceDeps,
  cluster: Cluster,
  archive: InTreeArchive,
  signal: AbortSignal,
): Promise<void> {
  const { context, places } = deps;
  const facts = await places.describe(archive);
  const store = await places.open(facts, "data");
  try {
    await applyPolicy(deps, cluster, facts, store, signal);
    // The objects before the catalog: a backup that completes meanwhile is in the catalog before its object says so.
    const backups = await context.kube.list(resources.backups, { namespace: context.settings.namespace, signal });
    const catalog = await readCatalog(store, facts.keys, signal);
    await removeStale(deps, archive, backups, catalog, signal);
    const window = { method: "barmanObjectStore", ...computeRecoveryWindow(catalog) };
    await deps.status.update((status) => withRecoveryWindow(status, window), signal);
  } finally {
    store.close();
  }
}

async function applyPolicy(
  { context, events }: MaintenanceDeps,
  cluster: Cluster,
  facts: PlaceFacts,
  store: ObjectStore,
  signal: AbortSignal,
): Promise<void> {
  const text = cluster.spec.backup?.retentionPolicy;
  if (!text) return;
  try {
    const policy = parseRetentionPolicy(text);
    if (!policy) throw new Error(`spec.backup.retentionPolicy "${text}" is none: write a number and d, w or m`);
    const catalog = await readCatalog(store, facts.keys, signal);
    const outcome = await runRetention(store, facts.keys, catalog, policy, { nowMs: context.clock.now(), signal });
    const { removed, walRemoved } = outcome;
    context.logger.info("Applied the retention policy", { retentionPolicy: text, removed, walRemoved });
  } catch (error) {
    if (signal.aborted) throw error;
    context.logger.error("Retention policy failed", { retentionPolicy: text, error });
    const { namespace = "", name = "", uid = "" } = cluster.metadata;
    events.record(
      { apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster", namespace, name, uid },
      { type: "Warning", reason: "RetentionPolicyFailed", message: "Retention policy failed" },
    );
  }
}

async function removeStale(
  { context }: MaintenanceDeps,
  archive: InTreeArchive,
  backups: Parameters<typeof staleInTreeBackups>[2],
  catalog: BackupCatalog,
  signal: AbortSignal,
): Promise<void> {
  const { kube, logger, settings } = context;
  const present = new Set([...catalog.backups, ...catalog.unreadable].map(({ id }) => id));
  for (const { metadata, status } of staleInTreeBackups(settings.clusterName, archive, backups, present)) {
    const { name = "", namespace = settings.namespace, uid } = metadata;
    try {
      await kube.delete(resources.backups, { namespace, name }, { signal, ...(uid ? { uid } : {}) });
      logger.info("Removed a Backup whose data is no longer in the archive", { name, backupId: status?.backupId });
    } catch (error) {
      if (!isKubeError(error, "notFound", "conflict")) throw error;
    }
  }
}
