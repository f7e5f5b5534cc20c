// What the pod writes into a Backup and into its Cluster, from the start of an in-pod backup to its end (reference: backup §4).
import { isArchivingOff } from "../../api/cluster-facts.ts";
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { type InTreeArchive, ownArchive } from "./wal-sources.ts";

export type BackupStatus = NonNullable<Backup["status"]>;
export type ClusterStatus = NonNullable<Cluster["status"]>;

export type BackupStart =
  | { kind: "inTree"; archive: InTreeArchive }
  | { kind: "plugin"; plugin: string; parameters: Record<string, string> }
  /** `status` is that of the HTTP answer. */
  | { kind: "refuse"; status: 400 | 409; message: string };

/** Decides what a start of a Backup in this pod runs. */
export function planBackupStart(cluster: Cluster, backup: Backup): BackupStart {
  const method = backup.spec.method ?? "barmanObjectStore";
  if (method === "plugin") {
    const { name, parameters = {} } = backup.spec.pluginConfiguration ?? {};
    if (!name)
      return { kind: "refuse", status: 400, message: "spec.pluginConfiguration.name is empty: name the plugin" };
    return { kind: "plugin", plugin: name, parameters };
  }
  if (method !== "barmanObjectStore") {
    return {
      kind: "refuse",
      status: 400,
      message: `unknown method: ${method}; an instance runs barmanObjectStore and plugin`,
    };
  }
  const archive = ownArchive(cluster);
  // One that runs already may be complete all the same.
  const isNew = backup.status?.phase !== "running";
  if (archive && isNew && isArchivingOff(cluster)) return { kind: "refuse", status: 409, message: archivingOff };
  if (archive) return { kind: "inTree", archive };
  const message = "spec.backup.barmanObjectStore is not set in the Cluster; set it, or use another method";
  return { kind: "refuse", status: 409, message };
}

const archivingOff =
  `WAL archiving is off by annotation ${annotations.skipWalArchiving}, and a backup without its WAL cannot be restored: ` +
  "take the annotation away";

/** A time as Kubernetes writes it: whole seconds. */
export function formatSeconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** Name of a backup in its archive. */
export function backupNameOf(ms: number): string {
  return `backup-${new Date(ms).toISOString().slice(0, 19).replaceAll(/\D/g, "")}`;
}

/** An in-tree backup is under way: where it goes is copied, so that it can be restored from the object alone. */
export function inTreeRunning(status: BackupStatus, archive: InTreeArchive, backupName: string): BackupStatus {
  const { configuration, serverName } = archive;
  const { s3Credentials, azureCredentials, googleCredentials, endpointCA, endpointURL, destinationPath } =
    configuration;
  const encryption = configuration.data?.encryption;
  return {
    ...status,
    phase: "running",
    method: "barmanObjectStore",
    backupName,
    destinationPath,
    serverName,
    ...(s3Credentials ? { s3Credentials } : {}),
    ...(azureCredentials ? { azureCredentials } : {}),
    ...(googleCredentials ? { googleCredentials } : {}),
    ...(endpointCA ? { endpointCA } : {}),
    ...(endpointURL ? { endpointURL } : {}),
    ...(encryption ? { encryption } : {}),
  };
}

/** While an in-tree backup waits for an archive that fails it says so, and not that it runs. */
export function inTreeWaiting(status: BackupStatus, isFailing: boolean): BackupStatus {
  return { ...status, phase: isFailing ? "walArchivingFailing" : "running" };
}

/** What is known of a backup that is complete. Times are milliseconds since the epoch; empty texts are left out. */
export interface CompletedBackup {
  backupId: string;
  backupName: string;
  startedAtMs: number | undefined;
  stoppedAtMs: number | undefined;
  beginWal: string;
  endWal: string;
  beginLsn: string;
  endLsn: string;
  backupLabelFile?: Uint8Array;
  tablespaceMapFile?: Uint8Array;
  online?: boolean;
  metadata?: Readonly<Record<string, string>>;
}

/** The backup is complete. An error of an earlier attempt goes. */
export function backupCompleted(status: BackupStatus, done: CompletedBackup, nowMs: number): BackupStatus {
  const { error: _error, commandError: _commandError, ...rest } = status;
  const text = (key: keyof BackupStatus, value: string) => (value === "" ? {} : { [key]: value });
  const bytes = (key: keyof BackupStatus, value: Uint8Array = new Uint8Array()) =>
    text(key, Buffer.from(value).toString("base64"));
  const metadata = done.metadata ?? {};
  return {
    ...rest,
    phase: "completed",
    ...text("backupId", done.backupId),
    ...text("backupName", done.backupName),
    ...(done.startedAtMs === undefined ? {} : { startedAt: formatSeconds(done.startedAtMs) }),
    ...(done.stoppedAtMs === undefined ? {} : { stoppedAt: formatSeconds(done.stoppedAtMs) }),
    ...text("beginWal", done.beginWal),
    ...text("endWal", done.endWal),
    ...text("beginLSN", done.beginLsn),
    ...text("endLSN", done.endLsn),
    ...bytes("backupLabelFile", done.backupLabelFile),
    ...bytes("tablespaceMapFile", done.tablespaceMapFile),
    ...(done.online === undefined ? {} : { online: done.online }),
    ...(Object.keys(metadata).length === 0 ? {} : { pluginMetadata: { ...metadata } }),
    reconciliationTerminatedAt: formatSeconds(nowMs),
  };
}

export function backupFailed(status: BackupStatus, error: string, nowMs: number): BackupStatus {
  return { ...status, phase: "failed", error, reconciliationTerminatedAt: formatSeconds(nowMs) };
}

/** Whether nothing more happens to a Backup. */
export function isBackupOver(backup: Backup): boolean {
  return backup.status?.phase === "completed" || backup.status?.phase === "failed";
}

/** Whether a Backup is this pod's to take and to write about; one that names no pod was started by hand. */
export function isBackupOf(backup: Backup, podName: string): boolean {
  const noted = backup.status?.instanceID?.podName;
  return noted === undefined || noted === podName;
}

/** Whether a session of the pod that is over by now took a backup of this cluster and wrote nothing of its end. */
export function isLeftRunning(backup: Backup, pod: { podName: string; clusterName: string }): boolean {
  const { phase, instanceID } = backup.status ?? {};
  return phase === "running" && instanceID?.podName === pod.podName && backup.spec.cluster.name === pod.clusterName;
}

type Condition = Pick<NonNullable<ClusterStatus["conditions"]>[number], "type" | "status" | "reason" | "message">;

const lastBackup = (status: "True" | "False", reason: string, message: string): Condition => ({
  type: "LastBackupSucceeded",
  status,
  reason,
  message,
});

export const backupStarted: Condition = lastBackup("False", "BackupStarted", "New Backup starting up");
export const backupSucceeded: Condition = lastBackup("True", "LastBackupSucceeded", "Backup was successful");
export const lastBackupFailed = (error: string): Condition => lastBackup("False", "LastBackupFailed", error);

/** What can be restored by backups of one method. Milliseconds since the epoch; `undefined` = nothing. */
export interface MethodWindow {
  method: string;
  firstRecoverabilityPointMs: number | undefined;
  lastSuccessfulBackupMs: number | undefined;
}

/** The Cluster's record of what can be restored, with one method's part replaced; the same object when nothing changes. */
export function withRecoveryWindow(status: ClusterStatus, window: MethodWindow): ClusterStatus {
  const replaced = (before: Record<string, string> | undefined, ms: number | undefined) => {
    const { [window.method]: _old, ...others } = before ?? {};
    return ms === undefined ? others : { ...others, [window.method]: formatSeconds(ms) };
  };
  const first = replaced(status.firstRecoverabilityPointByMethod, window.firstRecoverabilityPointMs);
  const last = replaced(status.lastSuccessfulBackupByMethod, window.lastSuccessfulBackupMs);
  const after = { ...status };
  setOrDelete(after, "firstRecoverabilityPointByMethod", Object.keys(first).length > 0 ? first : undefined);
  setOrDelete(after, "lastSuccessfulBackupByMethod", Object.keys(last).length > 0 ? last : undefined);
  // Texts of one form and zone sort as the times do.
  setOrDelete(after, "firstRecoverabilityPoint", Object.values(first).sort()[0]);
  setOrDelete(after, "lastSuccessfulBackup", Object.values(last).sort().at(-1));
  return JSON.stringify(after) === JSON.stringify(status) ? status : after;
}

function setOrDelete<K extends keyof ClusterStatus>(
  status: ClusterStatus,
  key: K,
  value: ClusterStatus[K] | undefined,
) {
  if (value === undefined) delete status[key];
  else status[key] = value;
}

/** In-tree backups that are said to be complete, but whose data the archive no longer has. */
export function staleInTreeBackups(
  clusterName: string,
  archive: InTreeArchive,
  backups: readonly Backup[],
  present: ReadonlySet<string>,
): Backup[] {
  const { destinationPath, endpointURL = "" } = archive.configuration;
  return backups.filter(
    ({ spec, status }) =>
      spec.cluster.name === clusterName &&
      status?.phase === "completed" &&
      (status.method ?? "barmanObjectStore") === "barmanObjectStore" &&
      status.destinationPath === destinationPath &&
      (status.endpointURL ?? "") === endpointURL &&
      status.serverName === archive.serverName &&
      status.backupId !== undefined &&
      !present.has(status.backupId),
  );
}
