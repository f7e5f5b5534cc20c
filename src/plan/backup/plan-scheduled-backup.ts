import { isBackupDone, scheduledBackupLabels } from "../../api/backup-phases.ts";
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { ScheduledBackup } from "../../api/generated/scheduledbackup.ts";
import { annotations, labels } from "../../api/labels.ts";
import { formatSeconds } from "../cluster/timestamps.ts";
import { scheduledBackupName, scheduleLabel } from "./backup-names.ts";
import type { BackupEvent } from "./plan-backup.ts";
import { nextSlot } from "./schedule.ts";

export type ScheduledBackupStatus = NonNullable<ScheduledBackup["status"]>;

export interface ObservedSchedule {
  invalid: string | null;
  /** Backups of the namespace. */
  backups: readonly Backup[];
  /** `undefined` when it does not exist. */
  cluster: Cluster | undefined;
  /** IANA name of the zone in which the schedule is meant. */
  timeZone: string;
}

export type ScheduleDecision =
  | { kind: "leave"; requeueAfterMs?: number; because: string; event?: BackupEvent }
  | {
      kind: "note";
      status: Partial<ScheduledBackupStatus>;
      requeueAfterMs?: number;
      because: string;
      event?: BackupEvent;
    }
  | {
      kind: "create";
      backup: Backup;
      /** When it has been made, and what to tell then. */
      status: Partial<ScheduledBackupStatus>;
      events: readonly BackupEvent[];
      /** When the name is somebody else's: the time is passed over. */
      refused: Partial<ScheduledBackupStatus>;
    };

/** How soon a child that is not done is looked at again, in milliseconds. */
const childPauseMs = 60_000;

/** Decides about one ScheduledBackup (reference: backups §4.10). */
export function planScheduledBackup(
  scheduled: ScheduledBackup,
  observed: ObservedSchedule,
  now: Date,
): ScheduleDecision {
  const { spec, status, metadata } = scheduled;
  if (metadata.deletionTimestamp) return { kind: "leave", because: "it is being deleted" };
  if (observed.invalid !== null)
    return { kind: "note", status: { error: observed.invalid }, because: observed.invalid };
  const checkedMs = status?.lastCheckTime ? Date.parse(status.lastCheckTime) : undefined;
  const next = (after: number) => nextSlot(spec.schedule, after, observed.timeZone);
  const children = observed.backups.filter((it) => isChildOf(it, scheduled));
  if (spec.suspend) return passOver("it is suspended", checkedMs, next, now);
  if (observed.cluster?.metadata.annotations?.[annotations.hibernation] === "on") {
    const skipped = passOver(`cluster ${spec.cluster.name} is hibernated`, checkedMs, next, now);
    const message = `No backup is made, as ${skipped.because}`;
    const event = { type: "Normal", reason: "BackupSkipped", message } as const;
    // Nothing tells this schedule of the cluster's awakening.
    return { requeueAfterMs: childPauseMs, ...skipped, ...(skipped.kind === "note" ? { event } : {}) };
  }
  const busy = children.find((it) => !isBackupDone(it.status?.phase));
  if (busy) {
    const because = `backup ${busy.metadata.name} is not done yet`;
    return { kind: "leave", requeueAfterMs: childPauseMs, because };
  }
  const upcoming = next(now.getTime());
  if (upcoming === null) {
    const message = `The schedule "${spec.schedule}" has no time within five years`;
    return { kind: "leave", because: message, event: { type: "Warning", reason: "NoSchedule", message } };
  }
  const nextScheduleTime = formatSeconds(new Date(upcoming));
  const untilNext = upcoming - now.getTime();
  if (checkedMs === undefined) {
    const isImmediate = (it: Backup) => it.metadata.labels?.[scheduledBackupLabels.immediate] === "true";
    const taken = spec.immediate ? children.find(isImmediate) : undefined;
    if (spec.immediate && !taken) return create(scheduled, observed, now, now, true, nextScheduleTime);
    const lastScheduleTime = taken?.metadata.creationTimestamp;
    const first = {
      lastCheckTime: formatSeconds(now),
      ...(lastScheduleTime ? { lastScheduleTime } : {}),
      nextScheduleTime,
    };
    const event = tell(`${taken ? "Next backup scheduled" : "Scheduled first backup"} by`, nextScheduleTime);
    return { kind: "note", status: first, requeueAfterMs: untilNext, because: "the first time is waited for", event };
  }
  const due = next(checkedMs);
  if (due !== null && due <= now.getTime())
    return create(scheduled, observed, now, new Date(due), false, nextScheduleTime);
  const because = `the next time is ${nextScheduleTime}`;
  if (status?.nextScheduleTime === nextScheduleTime) return { kind: "leave", requeueAfterMs: untilNext, because };
  return { kind: "note", status: { nextScheduleTime }, requeueAfterMs: untilNext, because };
}

/** Times that pass meanwhile are passed over for good: going on must not set a backup off at once. */
function passOver(
  because: string,
  checkedMs: number | undefined,
  next: (after: number) => number | null,
  now: Date,
): Exclude<ScheduleDecision, { kind: "create" }> {
  const due = checkedMs === undefined ? null : next(checkedMs);
  if (due !== null && due <= now.getTime()) {
    const upcoming = next(now.getTime());
    const requeue = upcoming === null ? {} : { requeueAfterMs: upcoming - now.getTime() };
    return { kind: "note", status: { lastCheckTime: formatSeconds(now) }, because, ...requeue };
  }
  return { kind: "leave", because, ...(due === null ? {} : { requeueAfterMs: due - now.getTime() }) };
}

function create(
  scheduled: ScheduledBackup,
  observed: ObservedSchedule,
  now: Date,
  slot: Date,
  immediate: boolean,
  nextScheduleTime: string,
): ScheduleDecision {
  const backup = buildBackup(scheduled, observed.cluster, slot, immediate);
  const refused = { lastCheckTime: formatSeconds(now), nextScheduleTime };
  const status = { ...refused, lastScheduleTime: formatSeconds(slot) };
  const events = [
    ...(immediate ? [tell("Scheduled immediate backup now:", formatSeconds(now))] : []),
    tell("Next backup scheduled by", nextScheduleTime),
  ];
  return { kind: "create", backup, status, events, refused };
}

/** An event about a time, which stands in it as people know it. */
function tell(what: string, time: string): BackupEvent {
  const message = `${what} ${time.replace("T", " ").replace("Z", " +0000 UTC")}`;
  return { type: "Normal", reason: "BackupSchedule", message };
}

function buildBackup(scheduled: ScheduledBackup, cluster: Cluster | undefined, slot: Date, immediate: boolean): Backup {
  const { metadata, spec } = scheduled;
  const { schedule: _, suspend: __, immediate: ___, backupOwnerReference: ____, ...copied } = spec;
  const owner = ownerOf(scheduled, cluster);
  const deadline = metadata.annotations?.[deadlineAnnotation];
  return {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: {
      name: scheduledBackupName(metadata.name ?? "", slot),
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
      labels: {
        [labels.cluster]: scheduleLabel(spec.cluster.name),
        [scheduledBackupLabels.immediate]: String(immediate),
        [scheduledBackupLabels.scheduledBackup]: scheduleLabel(metadata.name ?? ""),
      },
      ...(deadline === undefined ? {} : { annotations: { [deadlineAnnotation]: deadline } }),
      ...(owner ? { ownerReferences: [owner] } : {}),
    },
    spec: copied,
  };
}

const deadlineAnnotation = "cnpg.io/volumeSnapshotDeadline";

function ownerOf(scheduled: ScheduledBackup, cluster: Cluster | undefined) {
  const owner = { self: scheduled, cluster, none: undefined }[scheduled.spec.backupOwnerReference ?? "none"];
  if (!owner?.metadata.uid) return undefined;
  const { name = "", uid } = owner.metadata;
  return { apiVersion: owner.apiVersion, kind: owner.kind, name, uid, controller: true };
}

/** Whether a Backup was made for the schedule. */
export function isChildOf(backup: Backup, scheduled: ScheduledBackup): boolean {
  return (
    backup.metadata.labels?.[scheduledBackupLabels.scheduledBackup] === scheduleLabel(scheduled.metadata.name ?? "")
  );
}
