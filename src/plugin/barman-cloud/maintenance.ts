// The worker that keeps an archive in order: it removes what the retention policy no longer needs, and Backup objects whose
// data is gone, and tells in the ObjectStore's status what can be restored.

import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { readCatalog } from "../../archive/archive-reader.ts";
import { runRetention } from "../../archive/retention-run.ts";
import { serverKeys } from "../../barman/object-keys.ts";
import { parseRetentionPolicy } from "../../barman/retention.ts";
import { resources } from "../../kube/resources.ts";
import type { Clock } from "../../ports/clock.ts";
import type { EventSink } from "../../ports/event-sink.ts";
import { isKubeError, type KubeApi, type ObjectKey, type ResourceType } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import type { CachedReader } from "./cached-reader.ts";
import { planMaintenance, staleBackups } from "./maintenance-plan.ts";
import { possiblyGone, writeWindow } from "./recovery-window.ts";
import type { StoreAccess, StoreFacts } from "./store-access.ts";
import type { WalBound } from "./wal-bound.ts";

export interface MaintenanceDeps {
  api: KubeApi;
  reader: CachedReader;
  access: StoreAccess;
  events: EventSink;
  bound: WalBound;
  clock: Clock;
  logger: Logger;
  namespace: string;
  clusterName: string;
  podName: string;
  /** The kinds of the operator in use: forks have a group of their own. */
  clusters: ResourceType<Cluster>;
  backups: ResourceType<Backup>;
}

/** After an error, or when there is nothing to do for now. */
const shortPauseMs = 300_000;
const defaultIntervalSeconds = 1800;
/** One pass, whatever the store does. */
const passLimitMs = 1_800_000;

/** The worker, which is also told of the Clusters that pass by so that a new primary need not wait for the interval. */
export interface MaintenanceWorker extends Runnable {
  seen(cluster: Cluster): void;
}

/** Creates the worker of one instance. */
export function createMaintenanceWorker(deps: MaintenanceDeps): MaintenanceWorker {
  let waitsForRole = false;
  let wake: (() => void) | undefined;
  return {
    name: "retention worker",
    seen(cluster) {
      if (waitsForRole && cluster.status?.currentPrimary === deps.podName) wake?.();
    },
    async run(stop) {
      deps.logger.info("Starting retention policy runnable");
      while (!stop.aborted) {
        const { pauseMs, because } = await passOrPause(deps, stop);
        waitsForRole = because === "role";
        const early = new AbortController();
        wake = () => early.abort();
        await deps.clock.sleep(pauseMs, AbortSignal.any([stop, early.signal])).catch(() => undefined);
      }
    },
  };
}

async function passOrPause(deps: MaintenanceDeps, stop: AbortSignal) {
  const limit = new AbortController();
  const bounded = AbortSignal.any([stop, limit.signal]);
  const timer = new AbortController();
  deps.clock.sleep(passLimitMs, timer.signal).then(
    () => limit.abort(new Error("the pass over the archive took too long")),
    () => undefined,
  );
  try {
    return await maintain(deps, bounded);
  } catch (error) {
    if (!stop.aborted) deps.logger.error("Maintenance of the archive failed", { error });
    return { pauseMs: shortPauseMs };
  } finally {
    timer.abort();
  }
}

/** One pass; tells after what time the next one is due. */
export async function maintain(
  deps: MaintenanceDeps,
  signal: AbortSignal,
): Promise<{ pauseMs: number; because?: "disabled" | "role" }> {
  const { namespace, clusterName: name, podName, logger } = deps;
  const cluster = await deps.api.get(deps.clusters, { namespace, name }, { signal });
  const decision = planMaintenance(cluster, podName);
  if (decision.kind === "refuse") throw new Error(decision.reason);
  if (decision.kind === "skip") {
    logger.info("Skipping retention policy enforcement", { reason: decision.reason, podName });
    if (decision.because === "disabled") return { pauseMs: shortPauseMs, because: "disabled" };
  }
  const reference = decision.kind === "maintain" ? decision.store : undefined;
  if (!reference) return { pauseMs: defaultIntervalSeconds * 1000, because: "role" };
  const facts = await deps.access.describe(reference);
  const store = await deps.access.open(facts, "data");
  try {
    const policy = facts.object.spec.retentionPolicy;
    if (policy) await applyPolicy(policy, cluster, facts, store, deps, signal);
    // The objects before the catalog: a backup that completes meanwhile is in the catalog before its object says so.
    const objects = await deps.api.list(deps.backups, { namespace, signal });
    const catalog = await readCatalog(store, facts.keys, signal);
    await removeBackups(staleBackups(cluster, objects, catalog), deps, signal);
    const key = { namespace, name: reference.objectStore };
    await writeWindow(key, reference.serverName, { kind: "catalog", catalog }, { ...deps, signal });
    await forgetGoneServers(key, facts, store, deps, signal);
  } finally {
    store.close();
  }
  const seconds = facts.object.spec.instanceSidecarConfiguration?.retentionPolicyIntervalSeconds;
  return { pauseMs: (seconds ?? defaultIntervalSeconds) * 1000 || shortPauseMs };
}

/** Takes servers out of the status of which the archive holds nothing any more; nobody else would, once their cluster is gone. */
async function forgetGoneServers(
  key: ObjectKey,
  { connection, serverName: own }: StoreFacts,
  store: ObjectStore,
  deps: MaintenanceDeps,
  signal: AbortSignal,
): Promise<void> {
  const { status } = await deps.api.get(resources.objectStores, key, { signal });
  for (const [serverName, known] of possiblyGone(status?.serverRecoveryWindow ?? {}, own, deps.clock.now())) {
    const { prefix } = serverKeys(connection.destination.path, serverName);
    if (!(await isEmpty(store, prefix, signal))) continue;
    await writeWindow(key, serverName, { kind: "gone", known }, { ...deps, signal });
    deps.logger.info("Forgot a server of which the archive holds nothing any more", { serverName });
  }
}

async function isEmpty(store: ObjectStore, prefix: string, signal: AbortSignal): Promise<boolean> {
  for await (const { objects } of store.list(prefix, { signal })) if (objects.length > 0) return false;
  return true;
}

async function applyPolicy(
  text: string,
  cluster: Cluster,
  { keys }: StoreFacts,
  store: ObjectStore,
  deps: MaintenanceDeps,
  signal: AbortSignal,
): Promise<void> {
  try {
    const policy = parseRetentionPolicy(text);
    if (!policy) throw new Error(`retentionPolicy ${JSON.stringify(text)} is none: write a number and d, w or m`);
    const keepFrom = await deps.bound.get();
    const options = { nowMs: deps.clock.now(), signal, ...(keepFrom === undefined ? {} : { keepFrom }) };
    const outcome = await runRetention(store, keys, await readCatalog(store, keys, signal), policy, options);
    for (const { id, reason } of outcome.removed) deps.logger.info("Removed a backup", { backupId: id, reason });
    if (outcome.walRemoved > 0) {
      const { walRemoved, firstRequiredWal } = outcome;
      deps.logger.info("Removed WAL files that no backup needs", { count: walRemoved, firstRequiredWal });
    }
  } catch (error) {
    if (signal.aborted) throw error;
    // What can be told of the archive is told all the same.
    deps.logger.error("Retention policy failed", { error, retentionPolicy: text });
    const { name = "", namespace = "", uid = "" } = cluster.metadata;
    deps.events.record(
      { apiVersion: cluster.apiVersion, kind: cluster.kind, name, namespace, uid },
      { type: "Warning", reason: "RetentionPolicyFailed", message: "Retention policy failed" },
    );
  }
}

async function removeBackups(stale: readonly Backup[], deps: MaintenanceDeps, signal: AbortSignal): Promise<void> {
  for (const { metadata, status } of stale) {
    const { name = "", uid } = metadata;
    try {
      await deps.api.delete(deps.backups, { namespace: deps.namespace, name }, { signal, ...(uid ? { uid } : {}) });
      deps.logger.info("Removed a Backup whose data is no longer in the archive", { name, backupId: status?.backupId });
    } catch (error) {
      if (!isKubeError(error, "notFound", "conflict")) throw error;
    }
  }
}
