import { backupPhases, isBackupDone } from "../../api/backup-phases.ts";
import { enabledPlugins } from "../../api/cluster-facts.ts";
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { resources } from "../../kube/resources.ts";
import {
  type BackupDecision,
  type BackupEvent,
  type BackupStatus,
  type ObservedBackup,
  planBackup,
} from "../../plan/backup/plan-backup.ts";
import { type HookVerdict, hookPauseMs } from "../../plan/cluster/plugins.ts";
import type { Clock } from "../../ports/clock.ts";
import type { EventSink } from "../../ports/event-sink.ts";
import type { KubeApi } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import { type ReconcileResult, TerminalError } from "../../runtime/controller.ts";
import type { ClusterObserver } from "../observe.ts";
import type { OperatorStores } from "../stores.ts";
import { noteBackupFailed, noteBackupStarted } from "./cluster-condition.ts";
import type { BackupStarter } from "./start-backup.ts";

export interface BackupReconcilerOptions {
  api: KubeApi;
  stores: OperatorStores;
  events: EventSink;
  clock: Clock;
  observer: Pick<ClusterObserver, "poll">;
  starter: BackupStarter;
  /** The hooks of the cluster's plugins. */
  hooks(
    stage: "pre" | "post",
    objects: { cluster: Cluster; backup: Backup },
    signal: AbortSignal,
  ): Promise<HookVerdict>;
  /** What is wrong with a definition, as the webhooks would say it. */
  validate(backup: Backup): string | null;
  volumeSnapshots: boolean;
}

/** How soon a backup that was just started is looked at again, in milliseconds. */
const startedPauseMs = 30_000;

/** One pass over one Backup (reference: backups §4.3). */
export function createBackupReconciler(options: BackupReconcilerOptions) {
  return async (key: string, signal: AbortSignal, { logger }: { logger: Logger }): Promise<ReconcileResult> => {
    const [namespace = "", name = ""] = key.split("/");
    const backup = options.stores.backups.get({ namespace, name });
    // Most Backups have ended: nobody need be asked about them.
    if (!backup || isBackupDone(backup.status?.phase)) return {};
    const cluster = options.stores.clusters.get({ namespace, name: backup.spec.cluster.name });
    const observed = await observe(options, backup, cluster, signal);
    const decision = planBackup(backup, observed, new Date(options.clock.now()));
    logger.debug("Backup decided", { decision: decision.kind, because: "because" in decision ? decision.because : "" });
    return await execute(options, { backup, cluster, observed, decision, logger, signal });
  };
}

async function observe(
  options: BackupReconcilerOptions,
  backup: Backup,
  cluster: Cluster | undefined,
  signal: AbortSignal,
): Promise<ObservedBackup> {
  return {
    invalid: options.validate(backup),
    cluster,
    backups: options.stores.backups.list(backup.metadata.namespace),
    instances: cluster ? await options.observer.poll(cluster, signal) : [],
    volumeSnapshots: options.volumeSnapshots,
  };
}

interface Step {
  backup: Backup;
  cluster: Cluster | undefined;
  observed: ObservedBackup;
  decision: BackupDecision;
  logger: Logger;
  signal: AbortSignal;
}

async function execute(options: BackupReconcilerOptions, step: Step): Promise<ReconcileResult> {
  const { backup, cluster, decision, signal } = step;
  switch (decision.kind) {
    case "leave":
      if (cluster) await retell(options, step, cluster);
      return decision.requeueAfterMs === undefined ? {} : { requeueAfterMs: decision.requeueAfterMs };
    case "wait":
      if (decision.event) record(options, backup, decision.event);
      await writeStatus(options, backup, decision.status, signal);
      return { requeueAfterMs: decision.requeueAfterMs };
    case "refuse":
      await writeStatus(options, backup, decision.status, signal);
      throw new TerminalError(decision.because);
    case "fail":
      if (decision.event) record(options, backup, decision.event);
      await fail(options, backup, cluster, decision.message, signal);
      return {};
    case "start":
      return cluster ? await start(options, step, cluster, decision) : {};
  }
}

async function start(
  options: BackupReconcilerOptions,
  { backup, signal, logger }: Step,
  cluster: Cluster,
  decision: BackupDecision & { kind: "start" },
): Promise<ReconcileResult> {
  const isHooked = enabledPlugins(cluster).length > 0;
  if (isHooked) {
    const verdict = await options.hooks("pre", { cluster, backup }, signal);
    if (verdict.kind === "requeue") return { requeueAfterMs: hookPauseMs(verdict) };
    if (verdict.kind === "terminate") return {};
  }
  // An error of an earlier try, or of a definition that has been mended since, is over.
  const started = await writeStatus(options, backup, { ...decision.status, error: undefined }, signal);
  for (const event of decision.events) record(options, started, event);
  await noteBackupStarted(options, cluster, signal);
  try {
    await options.starter.start(started, decision.pod, signal);
  } catch (error) {
    signal.throwIfAborted();
    logger.error("The backup could not be started", { error });
    await fail(options, started, cluster, messageOf(error), signal);
    return {};
  }
  if (isHooked) {
    const verdict = await options.hooks("post", { cluster, backup: started }, signal);
    if (verdict.kind === "requeue") return { requeueAfterMs: hookPauseMs(verdict) };
  }
  return { requeueAfterMs: startedPauseMs };
}

/**
 * A backup whose start was written down, but perhaps never told to its pod: this operator was not the one that did. Only our
 * own instance managers are told twice; they know a backup by its UID and take it once.
 */
async function retell(options: BackupReconcilerOptions, step: Step, cluster: Cluster): Promise<void> {
  const { backup, observed, logger, signal } = step;
  const pod = backup.status?.instanceID?.podName ?? "";
  if (backup.status?.phase !== backupPhases.started || options.starter.hasStarted(backup)) return;
  const instance = observed.instances.find((it) => it.name === pod);
  if (instance?.kind !== "answered" || !instance.status.cnpgTs) return;
  try {
    await options.starter.start(backup, pod, signal);
  } catch (error) {
    signal.throwIfAborted();
    logger.error("The backup could not be started", { error });
    await fail(options, backup, cluster, messageOf(error), signal);
  }
}

async function fail(
  options: BackupReconcilerOptions,
  backup: Backup,
  cluster: Cluster | undefined,
  message: string,
  signal: AbortSignal,
): Promise<void> {
  const reconciliationTerminatedAt = new Date(options.clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
  const status = { phase: backupPhases.failed, error: message, reconciliationTerminatedAt };
  // The Cluster first: once the Backup has ended no pass comes back to it.
  if (cluster) await noteBackupFailed(options, cluster, message, signal);
  await writeStatus(options, backup, status, signal);
  record(options, backup, { type: "Warning", reason: "Failed", message });
}

/** Writes only what differs, on the version that was decided on; `undefined` takes a field away. */
async function writeStatus(
  { api, stores }: BackupReconcilerOptions,
  backup: Backup,
  change: { [K in keyof BackupStatus]?: BackupStatus[K] | undefined },
  signal: AbortSignal,
): Promise<Backup> {
  const before = (backup.status ?? {}) as Record<string, unknown>;
  const patch = Object.fromEntries(
    Object.entries(change)
      .filter(([field, value]) => JSON.stringify(before[field]) !== JSON.stringify(value))
      .map(([field, value]) => [field, value ?? null]),
  );
  if (Object.keys(patch).length === 0) return backup;
  const { namespace = "", name = "", resourceVersion } = backup.metadata;
  const body = { metadata: { resourceVersion }, status: patch };
  const written = await api.patch(
    resources.backups,
    { namespace, name },
    { type: "merge", body },
    { subresource: "status", signal },
  );
  stores.backups.observeWrite(written);
  return written;
}

function record({ events }: BackupReconcilerOptions, backup: Backup, event: BackupEvent): void {
  const { namespace = "", name = "", uid = "" } = backup.metadata;
  const target = { apiVersion: "postgresql.cnpg.io/v1", kind: "Backup", namespace, name, uid };
  events.record(target, event);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
