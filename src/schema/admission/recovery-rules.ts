import type { Cluster } from "../../api/generated/cluster.ts";
import { parseLsn } from "../../postgres/lsn.ts";
import { type FieldIssue, invalid, required } from "./field-issue.ts";
import { type ClusterRule, when } from "./rule.ts";
import { isTargetTime } from "./target-time.ts";

type Recovery = NonNullable<NonNullable<Cluster["spec"]["bootstrap"]>["recovery"]>;
type Target = NonNullable<Recovery["recoveryTarget"]>;

/** Where a new cluster is recovered or copied from, and up to which point. */
export const checkRecovery: ClusterRule = (cluster) => {
  const recovery = cluster.spec.bootstrap?.recovery;
  return [
    ...checkBaseBackupSource(cluster),
    ...(recovery
      ? [
          ...checkRecoverySource(cluster, recovery),
          ...checkDataSource(cluster, recovery),
          ...(recovery.recoveryTarget ? checkTarget(recovery, recovery.recoveryTarget) : []),
        ]
      : []),
  ];
};

function checkBaseBackupSource(cluster: Cluster): FieldIssue[] {
  const source = cluster.spec.bootstrap?.pg_basebackup?.source;
  if (source === undefined || externalCluster(cluster, source)) return [];
  return [invalid("spec.bootstrap.pg_basebackup.source", source, `External cluster ${source} not found`)];
}

function checkRecoverySource(cluster: Cluster, { source }: Recovery): FieldIssue[] {
  if (!source) return [];
  const path = "spec.bootstrap.recovery.source";
  const external = externalCluster(cluster, source);
  if (!external) return [invalid(path, source, `External cluster ${source} not found`)];
  const usable =
    Object.keys(external.connectionParameters ?? {}).length > 0 || external.barmanObjectStore || external.plugin;
  return when(
    !usable,
    invalid(
      path,
      source,
      `External cluster ${source} cannot be used for recovery: ` +
        "missing connection parameters, Barman, or CNPG-i configuration",
    ),
  );
}

function checkDataSource(cluster: Cluster, recovery: Recovery): FieldIssue[] {
  const snapshots = recovery.volumeSnapshots;
  if (!snapshots) return [];
  const path = "spec.bootstrap.recovery";
  const kinds = "Only VolumeSnapshots and PersistentVolumeClaims are supported";
  return [
    ...when(
      recovery.backup !== undefined,
      invalid(
        `${path}.backup`,
        recovery.backup?.name,
        "Recovery from dataSource is not compatible with other types of recovery",
      ),
    ),
    ...when(
      Boolean(recovery.recoveryTarget?.backupID),
      invalid(
        `${path}.recoveryTarget.backupID`,
        recovery.recoveryTarget?.backupID,
        "Cannot specify a backupID when recovering using a DataSource",
      ),
    ),
    ...when(!isVolumeSource(snapshots.storage), invalid(`${path}.storage`, snapshots.storage, kinds)),
    ...when(
      snapshots.walStorage !== undefined && !isVolumeSource(snapshots.walStorage),
      invalid(`${path}.dataSource.walStorage`, snapshots.walStorage, kinds),
    ),
    ...when(
      snapshots.walStorage !== undefined && !cluster.spec.walStorage,
      invalid(
        `${path}.dataSource.walStorage`,
        snapshots.walStorage,
        "A WAL storage configuration is required when recovering using a DataSource for WALs",
      ),
    ),
    ...Object.entries(snapshots.tablespaceStorage ?? {}).flatMap(([name, source]) =>
      when(!isVolumeSource(source), invalid(`${path}.dataSource.tablespaceStorage[${name}]`, source, kinds)),
    ),
  ];
}

function checkTarget(recovery: Recovery, target: Target): FieldIssue[] {
  const path = "spec.bootstrap.recovery.recoveryTarget";
  const { targetImmediate, targetLSN, targetName, targetXID, targetTime, targetTLI, backupID } = target;
  const chosen = [targetImmediate === true, targetLSN, targetName, targetXID, targetTime].filter(Boolean);
  const needsBackup = Boolean(targetName || targetXID || targetImmediate !== undefined);
  return [
    ...when(chosen.length > 1, invalid(path, target, "Recovery target options are mutually exclusive")),
    ...when(
      Boolean(targetTime) && !isTargetTime(targetTime ?? ""),
      invalid(path, targetTime, "The format of TargetTime is invalid"),
    ),
    ...when(
      Boolean(targetLSN) && parseLsn(targetLSN ?? "") === undefined,
      invalid(path, targetLSN, "Invalid TargetLSN"),
    ),
    ...when(needsBackup && !backupID && !recovery.volumeSnapshots, required(path, "BackupID is missing")),
    ...checkTargetXid(`${path}.targetXID`, targetXID),
    ...checkTargetName(`${path}.targetName`, targetName),
    ...when(
      Boolean(targetTLI) && targetTLI !== "latest" && !/^0*[1-9][0-9]*$/.test(targetTLI ?? ""),
      invalid(`${path}.targetTLI`, targetTLI, "recovery target timeline can be set to 'latest' or a positive integer"),
    ),
  ];
}

function checkTargetXid(path: string, xid: string | undefined): FieldIssue[] {
  const valid = !xid || (/^[0-9]+$/.test(xid) && BigInt(xid) < 2n ** 32n);
  return when(!valid, invalid(path, xid, "recovery target xid must be a non-negative 32-bit integer"));
}

function checkTargetName(path: string, name: string | undefined): FieldIssue[] {
  if (!name) return [];
  const control = [...name].some((char) => char < " " || char === "\u007f");
  return [
    ...when(
      new TextEncoder().encode(name).length >= 64,
      invalid(path, name, "recovery target name must be shorter than 64 bytes"),
    ),
    ...when(control, invalid(path, name, "recovery target name must not contain ASCII control characters")),
  ];
}

function isVolumeSource({ apiGroup, kind }: { apiGroup?: string; kind: string }): boolean {
  if (kind === "VolumeSnapshot") return apiGroup === "snapshot.storage.k8s.io";
  return kind === "PersistentVolumeClaim" && (apiGroup ?? "") === "";
}

function externalCluster(cluster: Cluster, name: string) {
  return cluster.spec.externalClusters?.find((external) => external.name === name);
}
