import { backupPhases, isBackupDone, isBackupExecuting } from "../../api/backup-phases.ts";
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { imageMajor } from "../../postgres/image-version.ts";
import type { PolledInstance } from "../cluster/observed.ts";
import { formatSeconds } from "../cluster/timestamps.ts";
import { choosePod, containerId } from "./choose-pod.ts";
import { judgeStart, type StartKnowledge } from "./judge-start.ts";
import { backupMethod, findObstacle } from "./prerequisites.ts";
import { findPredecessor } from "./queue.ts";
import { judgeStarted } from "./still-valid.ts";

export type BackupStatus = NonNullable<Backup["status"]>;

/** What one pass over a Backup may know. */
export interface ObservedBackup {
  /** What is wrong with the definition, in words; `null` when it is good. */
  invalid: string | null;
  /** `undefined` when it does not exist. */
  cluster: Cluster | undefined;
  /** All Backups of the namespace. */
  backups: readonly Backup[];
  /** Active instances of the cluster, asked in this pass. */
  instances: readonly PolledInstance[];
  start: StartKnowledge;
  volumeSnapshots: boolean;
}

export interface BackupEvent {
  type: "Normal" | "Warning";
  reason: string;
  message: string;
}

/** What is to be done about a Backup. */
export type BackupDecision =
  /** Nothing, until something changes or the time has passed; `taken` = its pod is taking it. */
  | { kind: "leave"; requeueAfterMs?: number; because: string; taken?: boolean }
  /** Its pod, which may not know of it, is to be told. */
  | { kind: "ask"; pod: string; because: string }
  /** It can't be taken now. */
  | { kind: "wait"; status: Partial<BackupStatus>; event?: BackupEvent; requeueAfterMs: number; because: string }
  /** The definition is wrong; whoever mends it starts a new pass. */
  | { kind: "refuse"; status: Partial<BackupStatus>; because: string }
  /** It failed for good. `event` comes beside the one that every failure has, `alias` beside that under its former reason. */
  | { kind: "fail"; message: string; event?: BackupEvent; alias?: BackupEvent }
  /** The pod that takes it is to be told so; `restarts` = how often it has been begun anew then, absent the first time. */
  | { kind: "start"; pod: string; status: Partial<BackupStatus>; events: readonly BackupEvent[]; restarts?: number };

/** Pauses of the reference, in milliseconds. */
const pauses = { cluster: 30_000, others: 10_000, pod: 30_000, running: 600_000, lookUp: 10_000 } as const;

/** Decides about one Backup (reference: backups §4.3). */
export function planBackup(backup: Backup, observed: ObservedBackup, now: Date): BackupDecision {
  const phase = backup.status?.phase;
  if (backup.metadata.annotations?.[annotations.reconciliationLoop] === "disabled") {
    return { kind: "leave", because: "reconciliation is disabled by annotation" };
  }
  if (isBackupDone(phase) || backup.metadata.deletionTimestamp) return { kind: "leave", because: "it has ended" };
  if (observed.invalid !== null) {
    const status = { phase: backupPhases.invalid, error: observed.invalid };
    return { kind: "refuse", status, because: observed.invalid };
  }
  const { cluster } = observed;
  if (!cluster) {
    const message = `Unknown cluster ${backup.spec.cluster.name}, will retry in 30 seconds`;
    return wait(pauses.cluster, message, { type: "Warning", reason: "FindingCluster", message });
  }
  const obstacle = findObstacle(backup, cluster, observed);
  if (obstacle) {
    const event: BackupEvent = { type: "Warning", reason: obstacle.event, message: obstacle.message };
    const { formerEvent, message } = obstacle;
    return { kind: "fail", message, event, ...(formerEvent ? { alias: { ...event, reason: formerEvent } } : {}) };
  }
  if (phase === backupPhases.walArchivingFailing && isOfAnother(backup, observed.instances)) {
    // Written by instance managers that are not ours, after their last try: nothing comes after it by itself.
    return {
      kind: "fail",
      message: "WAL archiving does not work: see the condition ContinuousArchiving of the cluster",
    };
  }
  if (isBackupExecuting(phase)) return planStarted(backup, cluster, observed, now);
  if (phase === backupPhases.finalizing) return { kind: "fail", message: noSnapshots };
  const predecessor = findPredecessor(backup, observed.backups);
  if (predecessor) {
    const because = `backup ${predecessor.metadata.name} of the same cluster comes first`;
    return wait(pauses.others, because);
  }
  return planStart(backup, cluster, observed, now, []);
}

/** Whether an instance manager takes it that is not ours; one that is silent may be. */
function isOfAnother(backup: Backup, instances: readonly PolledInstance[]): boolean {
  const instance = instances.find((it) => it.name === backup.status?.instanceID?.podName);
  return instance?.kind === "answered" && instance.status.cnpgTs === undefined;
}

/** How often a backup whose pod goes away is begun anew. */
const restartLimit = 3;

function planStarted(backup: Backup, cluster: Cluster, observed: ObservedBackup, now: Date): BackupDecision {
  if (backupMethod(backup) === "volumeSnapshot") return { kind: "fail", message: noSnapshots };
  const validity = judgeStarted(backup, cluster, observed.instances);
  if (validity.kind !== "running" && isEndedByItsPod(backup, observed.instances)) {
    const because = `${backup.status?.instanceID?.podName} looks in the archive what became of it`;
    return { kind: "leave", requeueAfterMs: pauses.lookUp, because };
  }
  switch (validity.kind) {
    case "lost": {
      // Ours takes a Backup that has no data yet from the beginning, and its plugin knows of one that it has finished meanwhile.
      const instance = observed.instances.find((it) => it.name === backup.status?.instanceID?.podName);
      const isOurs = instance?.kind === "answered" && instance.status.cnpgTs !== undefined;
      if (isOurs && backup.status?.phase !== backupPhases.running) {
        return planReplaced(backup, cluster, observed, now, validity.message);
      }
      const event: BackupEvent = { type: "Warning", reason: "InstanceManagerRestarted", message: validity.message };
      return { kind: "fail", message: validity.message, event };
    }
    case "replaced":
      return planReplaced(backup, cluster, observed, now, validity.reason);
    case "running": {
      if (backup.status?.phase === backupPhases.running) return taken("its pod takes it and writes what becomes of it");
      const start = judgeStart(backup, validity.instance, observed.start, now);
      if (start.kind === "told") return taken(start.because);
      if (start.kind === "wait") return { kind: "leave", requeueAfterMs: start.afterMs, because: start.because };
      return start.kind === "ask" ? { ...start, pod: validity.instance.name } : start;
    }
  }
}

function taken(because: string): BackupDecision {
  return { kind: "leave", taken: true, requeueAfterMs: pauses.running, because };
}

/** Whether the next session of its pod tells how an in-tree backup has ended: its data may be complete. */
function isEndedByItsPod(backup: Backup, instances: readonly PolledInstance[]): boolean {
  if (backup.status?.phase !== backupPhases.running || backupMethod(backup) !== "barmanObjectStore") return false;
  const instance = instances.find((it) => it.name === backup.status?.instanceID?.podName);
  if (instance?.kind !== "answered" || instance.status.sessionID === backup.status.instanceID?.sessionID) return false;
  return instance.status.cnpgTs?.endsBackups === true;
}

/**
 * A backup that has not got as far as to write data is begun anew elsewhere. One that has is failed, with its half of the data: those
 * behind it must not wait for what may happen again, and its own schedule makes the next one.
 */
function planReplaced(
  backup: Backup,
  cluster: Cluster,
  observed: ObservedBackup,
  now: Date,
  reason: string,
): BackupDecision {
  if (backup.status?.phase === backupPhases.running)
    return { kind: "fail", message: `the backup was cut off: ${reason}` };
  const restarts = countRestarts(backup);
  if (restarts >= restartLimit) {
    return { kind: "fail", message: `the backup was begun anew ${restartLimit} times, and again ${reason}` };
  }
  const message = `Restarting the backup: ${reason}`;
  const again = planStart(backup, cluster, observed, now, [{ type: "Normal", reason: "ReStarting", message }]);
  return again.kind === "start" ? { ...again, restarts: restarts + 1 } : again;
}

/** How often a Backup was begun anew; it says so itself, so that every operator counts alike. */
function countRestarts(backup: Backup): number {
  const count = Number.parseInt(backup.metadata.annotations?.[annotations.backupRestarts] ?? "", 10);
  return Number.isNaN(count) || count < 0 ? 0 : count;
}

const noSnapshots =
  "backups by volume snapshots are not supported by this operator: use method plugin or barmanObjectStore";

function planStart(
  backup: Backup,
  cluster: Cluster,
  observed: ObservedBackup,
  now: Date,
  events: readonly BackupEvent[],
): BackupDecision {
  const method = backupMethod(backup);
  if (method === "volumeSnapshot") return { kind: "fail", message: noSnapshots };
  const choice = choosePod(backup, cluster, observed.instances);
  if (choice.kind === "none") {
    return wait(pauses.pod, choice.reason, { type: "Warning", reason: choice.event, message: choice.reason });
  }
  const { instance } = choice;
  const major = imageMajor(cluster.status?.image ?? "");
  const status: Partial<BackupStatus> = {
    phase: backupPhases.started,
    method,
    instanceID: {
      podName: instance.name,
      ContainerID: containerId(instance.pod),
      ...(instance.status.sessionID ? { sessionID: instance.status.sessionID } : {}),
    },
    reconciliationStartedAt: formatSeconds(now),
    ...(major === undefined ? {} : { majorVersion: major }),
  };
  const message = `Starting backup for cluster ${cluster.metadata.name}`;
  const starting: BackupEvent = { type: "Normal", reason: "Starting", message };
  return { kind: "start", pod: instance.name, status, events: [...events, starting] };
}

function wait(requeueAfterMs: number, because: string, event?: BackupEvent): BackupDecision {
  const status = { phase: backupPhases.pending };
  return { kind: "wait", status, requeueAfterMs, because, ...(event ? { event } : {}) };
}
