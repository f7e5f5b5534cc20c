// The controllers of Backups and ScheduledBackups, with what wakes them.
import { isBackupDone, isBackupExecuting } from "../../api/backup-phases.ts";
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { labels } from "../../api/labels.ts";
import { isChildOf } from "../../plan/backup/plan-scheduled-backup.ts";
import type { HookVerdict } from "../../plan/cluster/plugins.ts";
import type { Clock, Random } from "../../ports/clock.ts";
import type { EventSink } from "../../ports/event-sink.ts";
import type { KubeApi } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import type { PodExec } from "../../ports/pod-exec.ts";
import { createController } from "../../runtime/controller.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import type { Runnable } from "../../runtime/runnable.ts";
import { createWorkQueue } from "../../runtime/work-queue.ts";
import { validateBackup, validateMadeBackups, validateScheduledBackup } from "../../schema/admission/backup.ts";
import { type FieldIssue, formatFieldIssue } from "../../schema/admission/field-issue.ts";
import { keyOf } from "../cluster-controller.ts";
import type { ClusterObserver } from "../observe.ts";
import type { OperatorStores } from "../stores.ts";
import { untilAborted } from "../until-aborted.ts";
import { createBackupReconciler } from "./backup-controller.ts";
import { createScheduledBackupReconciler } from "./scheduled-backup-controller.ts";
import { createBackupStarter } from "./start-backup.ts";

export interface BackupProgramsOptions {
  api: KubeApi;
  stores: OperatorStores;
  /** Where each of the two controllers reports. */
  events: { backups: EventSink; schedules: EventSink };
  clock: Clock;
  random: Random;
  logger: Logger;
  metrics: Metrics;
  observer: ClusterObserver;
  exec: PodExec;
  hooks(
    stage: "pre" | "post",
    objects: { cluster: Cluster; backup: Backup },
    signal: AbortSignal,
  ): Promise<HookVerdict>;
  volumeSnapshots: boolean;
  /** IANA name of the zone in which schedules are meant; asked for late, because zones take memory. */
  timeZone: () => string;
}

/** Everything that makes backups happen, for the leader only. */
export function createBackupPrograms(options: BackupProgramsOptions): Runnable[] {
  const { stores, clock, logger, metrics } = options;
  const backups = createWorkQueue({ name: "backup", clock, metrics: metrics.forQueue("backup") });
  const schedules = createWorkQueue({ name: "scheduledbackup", clock, metrics: metrics.forQueue("scheduledbackup") });
  const starter = createBackupStarter(options.exec, options);
  const validate = (issues: readonly FieldIssue[]) =>
    issues.length === 0 ? null : issues.map(formatFieldIssue).join("; ");
  const reconcileBackup = createBackupReconciler({
    ...options,
    events: options.events.backups,
    starter,
    validate: (backup) => validate(validateBackup(backup, options)),
  });
  const reconcileSchedule = createScheduledBackupReconciler({
    ...options,
    events: options.events.schedules,
    validate: (scheduled) =>
      validate([...validateScheduledBackup(scheduled, options), ...validateMadeBackups(scheduled)]),
  });
  const controller = (
    name: string,
    queue: typeof backups,
    reconcile: Parameters<typeof createController>[0]["reconcile"],
  ) => createController({ name, queue, reconcile, logger, clock, metrics: metrics.forController(name, 1) });
  return [
    {
      name: "backup watches",
      async run(stop) {
        const stops = subscribe(
          stores,
          (key) => backups.add(key),
          (key) => schedules.add(key),
        );
        for (const backup of stores.backups.list()) backups.add(keyOf(backup));
        for (const scheduled of stores.scheduledBackups.list()) schedules.add(keyOf(scheduled));
        await untilAborted(stop);
        for (const each of stops) each();
      },
    },
    controller("backup", backups, reconcileBackup),
    controller("scheduledbackup", schedules, reconcileSchedule),
  ];
}

function subscribe(
  stores: OperatorStores,
  wakeBackup: (key: string) => void,
  wakeSchedule: (key: string) => void,
): (() => void)[] {
  const ofCluster = (namespace: string | undefined, cluster: string | undefined) =>
    stores.backups.list(namespace).filter((it) => it.spec.cluster.name === cluster && !isBackupDone(it.status?.phase));
  return [
    stores.backups.subscribe(({ object }) => {
      wakeBackup(keyOf(object));
      const schedules = stores.scheduledBackups.list(object.metadata.namespace);
      for (const schedule of schedules.filter((it) => isChildOf(object, it))) wakeSchedule(keyOf(schedule));
      // Its successor need not wait for its own next look.
      if (isBackupDone(object.status?.phase)) {
        for (const next of ofCluster(object.metadata.namespace, object.spec.cluster.name)) wakeBackup(keyOf(next));
      }
    }),
    stores.scheduledBackups.subscribe(({ object }) => wakeSchedule(keyOf(object))),
    stores.clusters.subscribe((event) => {
      const { namespace, name } = event.object.metadata;
      const before = event.type === "updated" ? event.previous : undefined;
      // A status changes all the time; what a backup waits for is the cluster itself, its primary and its phase.
      const isNews =
        !before ||
        before.status?.phase !== event.object.status?.phase ||
        before.status?.targetPrimary !== event.object.status?.targetPrimary ||
        before.metadata.generation !== event.object.metadata.generation;
      if (isNews) for (const backup of ofCluster(namespace, name)) wakeBackup(keyOf(backup));
    }),
    stores.pods.subscribe((event) => {
      if (event.type === "added") return;
      const { namespace, name, labels: ofPod } = event.object.metadata;
      for (const backup of ofCluster(namespace, ofPod?.[labels.cluster])) {
        const isItsPod = isBackupExecuting(backup.status?.phase) && backup.status?.instanceID?.podName === name;
        if (isItsPod) wakeBackup(keyOf(backup));
      }
    }),
  ];
}
