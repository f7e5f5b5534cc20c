import { boolean, dateTime, enumOf, object, required, string } from "./parts/builders.ts";
import { ageColumn, column, defineKind } from "./parts/definition.ts";
import { backupRequest } from "./shared/backup-request.ts";
import { ownCluster } from "./shared/references.ts";

/** CustomResourceDefinition of ScheduledBackup. */
export const scheduledBackup = defineKind({
  group: "postgresql.cnpg.io",
  kind: "ScheduledBackup",
  description: "Base backups of a cluster, taken again and again on a schedule.",
  columns: [
    ageColumn,
    column("Cluster", ".spec.cluster.name"),
    column("Last Backup", ".status.lastScheduleTime", "date"),
  ],
  spec: object("When to back up what, and how.", {
    ...backupRequest,
    backupOwnerReference: enumOf(
      "Object whose deletion takes the backups with it: none, this one (self) or the cluster.",
      ["none", "self", "cluster"],
      { default: "none" },
    ),
    cluster: required(ownCluster),
    immediate: boolean("Take the first backup at once, before the schedule asks for one."),
    schedule: required(string("Six fields of cron, seconds first, or a word such as @daily.")),
    suspend: boolean("Take no backups for the time being."),
  }),
  status: object("How the schedule proceeds.", {
    error: string("Why the last backup could not be started."),
    lastCheckTime: dateTime("When the schedule was last looked at."),
    lastScheduleTime: dateTime("When the last backup was started."),
    nextScheduleTime: dateTime("When the next backup is due."),
  }),
});
