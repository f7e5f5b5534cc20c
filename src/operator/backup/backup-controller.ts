import { backupPhases, isBackupDone } from "../../api/backup-phases.ts";
import { enabledPlugins } from "../../api/cluster-facts.ts";
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
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
    if (!backup || isBackupDone(backup.status?.phase)) {
      if (backup) options.starter.forget(backup);
      return {};
    }
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
    start: options.starter.known(backup),
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
  const { backup, cluster, decision, logger, signal } = step;
  switch (decision.kind) {
    case "leave": {
      const verdict =
        cluster && decision.taken ? await runHooks(options, "pre", { cluster, backup }, signal) : undefined;
      if (verdict?.kind === "requeue") return { requeueAfterMs: hookPauseMs(verdict) };
      return decision.requeueAfterMs === undefined ? {} : { requeueAfterMs: decision.requeueAfterMs };
    }
    case "ask":
      logger.info("Telling a pod of a backup whose start was claimed before", {
        pod: decision.pod,
        because: decision.because,
      });
      return cluster ? await ask(options, step, cluster, backup, decision.pod) : {};
    case "wait":
      if (decision.event) record(options, backup, decision.event);
      await writeStatus(options, backup, decision.status, signal);
      return { requeueAfterMs: decision.requeueAfterMs };
    case "refuse":
      await writeStatus(options, backup, decision.status, signal);
      throw new TerminalError(decision.because);
    case "fail":
      if (decision.event) record(options, backup, decision.event);
      if (decision.alias) record(options, backup, decision.alias);
      await fail(options, backup, cluster, decision.message, signal);
      return {};
    case "start":
      return cluster ? await start(options, step, cluster, decision) : {};
  }
}

async function start(
  options: BackupReconcilerOptions,
  step: Step,
  cluster: Cluster,
  decision: BackupDecision & { kind: "start" },
): Promise<ReconcileResult> {
  const { backup, signal } = step;
  const verdict = await runHooks(options, "pre", { cluster, backup }, signal);
  if (verdict?.kind === "requeue") return { requeueAfterMs: hookPauseMs(verdict) };
  if (verdict?.kind === "terminate") return {};
  // Counted before it happens: an operator that ends in between has begun one too few, never one too many.
  const counted =
    decision.restarts === undefined
      ? backup
      : await annotate(options, backup, { [annotations.backupRestarts]: String(decision.restarts) }, signal, "decided");
  // An error of an earlier try, or of a definition that has been mended since, is over.
  const started = await writeStatus(options, counted, { ...decision.status, error: undefined }, signal);
  for (const event of decision.events) record(options, started, event);
  await noteBackupStarted(options, cluster, signal);
  return ask(options, step, cluster, started, decision.pod);
}

/** How soon an answer that did not come is asked for again, in milliseconds. */
const unheardPauseMs = 10_000;

async function ask(
  options: BackupReconcilerOptions,
  { observed, logger, signal }: Step,
  cluster: Cluster,
  backup: Backup,
  pod: string,
): Promise<ReconcileResult> {
  const instance = observed.instances.find((it) => it.name === pod);
  const isOurs = instance?.kind === "answered" && instance.status.cnpgTs !== undefined;
  const answer = await options.starter.ask(backup, pod, { idempotent: isOurs, signal });
  switch (answer.kind) {
    case "refused":
      logger.error("The backup could not be started", { pod, reason: answer.reason });
      await fail(options, backup, cluster, answer.reason, signal);
      return {};
    case "unheard":
      logger.warning("No answer came to the start of a backup", { pod, reason: answer.reason });
      return { requeueAfterMs: unheardPauseMs };
    case "accepted": {
      if (!isOurs) {
        // The next operator must know that an instance manager that can't be asked twice was asked.
        const accepted = { [annotations.backupAccepted]: backup.status?.reconciliationStartedAt ?? "" };
        await annotate(options, backup, accepted, signal);
      }
      const verdict = await runHooks(options, "post", { cluster, backup }, signal);
      return { requeueAfterMs: verdict?.kind === "requeue" ? hookPauseMs(verdict) : startedPauseMs };
    }
  }
}

/** Notes something on the Backup; `decided`: only on the very version that was decided on. */
async function annotate(
  { api, stores }: BackupReconcilerOptions,
  backup: Backup,
  notes: Record<string, string>,
  signal: AbortSignal,
  version: "decided" | "any" = "any",
): Promise<Backup> {
  const { namespace = "", name = "", uid, resourceVersion } = backup.metadata;
  const body = { metadata: { uid, annotations: notes, ...(version === "decided" ? { resourceVersion } : {}) } };
  const written = await api.patch(resources.backups, { namespace, name }, { type: "merge", body }, { signal });
  stores.backups.observeWrite(written);
  return written;
}

async function runHooks(
  options: BackupReconcilerOptions,
  stage: "pre" | "post",
  objects: { cluster: Cluster; backup: Backup },
  signal: AbortSignal,
): Promise<HookVerdict | undefined> {
  return enabledPlugins(objects.cluster).length > 0 ? options.hooks(stage, objects, signal) : undefined;
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
