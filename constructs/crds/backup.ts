import { boolean, dateTime, integer, listOf, object, required, string, stringMap } from "./parts/builders.ts";
import { ageColumn, column, defineKind } from "./parts/definition.ts";
import { rule } from "./parts/rules.ts";
import { backupRequest } from "./shared/backup-request.ts";
import { storeAccess } from "./shared/object-store.ts";
import { nameReference } from "./shared/references.ts";

const instanceId = object("Instance that takes the backup.", {
  ContainerID: string("ID of its container, so that a restart is noticed."),
  podName: string("Name of its pod."),
  sessionID: string("ID of its instance manager's run, so that a restart of the manager is noticed."),
});

const snapshots = object("Volume snapshots that make up the backup.", {
  elements: listOf(
    "One entry for each snapshot.",
    object("A snapshot of one volume.", {
      name: required(string("Name of the VolumeSnapshot.")),
      tablespaceName: string("Tablespace that the volume holds, for type PG_TABLESPACE."),
      type: required(string("What the volume holds: PG_DATA, PG_WAL or PG_TABLESPACE.")),
    }),
  ),
});

/** CustomResourceDefinition of Backup. */
export const backup = defineKind({
  group: "postgresql.cnpg.io",
  kind: "Backup",
  description: "One base backup of a cluster, to be taken or already taken.",
  columns: [
    ageColumn,
    column("Cluster", ".spec.cluster.name"),
    column("Method", ".spec.method"),
    column("Phase", ".status.phase"),
    column("Error", ".status.error"),
  ],
  spec: object(
    "What to back up and how; fixed at creation.",
    { ...backupRequest, cluster: required(nameReference("Cluster to back up.")) },
    { rules: [rule("BackupSpec is immutable once set", "oldSelf == self")] },
  ),
  status: object("How the backup went and where it is.", {
    ...storeAccess,
    backupId: string("ID of the backup in the archive."),
    backupLabelFile: string("Content of the backup_label file, from a hot volume snapshot.", { format: "byte" }),
    backupName: string("Name of the backup in the archive."),
    beginLSN: string("Position in the WAL at which the backup starts."),
    beginWal: string("WAL file at which the backup starts."),
    commandError: string("Error output of the backup command."),
    commandOutput: string("Output of the backup command."),
    destinationPath: string("URL of the folder under which the archive is."),
    encryption: string("Server-side encryption that was asked for."),
    endLSN: string("Position in the WAL from which the backup is consistent."),
    endWal: string("Last WAL file that the backup needs."),
    error: string("Why the backup failed."),
    instanceID: instanceId,
    majorVersion: integer("Major version of PostgreSQL that was backed up."),
    method: string("Way in which the backup was taken."),
    online: boolean("Whether PostgreSQL was running during a volume snapshot."),
    phase: string("Stage that the backup has reached."),
    pluginMetadata: stringMap("What the plugin noted about the backup."),
    reconciliationStartedAt: dateTime("When the operator first looked at the backup."),
    reconciliationTerminatedAt: dateTime("When the operator was done with the backup."),
    serverName: string("Folder of the server in the archive."),
    snapshotBackupStatus: snapshots,
    startedAt: dateTime("When the backup started."),
    stoppedAt: dateTime("When the backup ended."),
    tablespaceMapFile: string("Content of the tablespace_map file, from a hot volume snapshot.", { format: "byte" }),
  }),
});
