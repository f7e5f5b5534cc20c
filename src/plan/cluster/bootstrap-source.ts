import { clusterNamespace } from "../../api/cluster-facts.ts";
import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { TypedLocalObjectReference } from "../../api/generated/kubernetes.ts";
import { annotations, labels } from "../../api/labels.ts";
import type { PvcSources } from "../../build/pvcs.ts";
import type { EndpointCa } from "../../build/recovery-ca.ts";
import type { ByName, ObservedCluster, ObservedSnapshot } from "./observed.ts";

type Recovery = NonNullable<NonNullable<Cluster["spec"]["bootstrap"]>["recovery"]>;
type SnapshotSet = NonNullable<Recovery["volumeSnapshots"]>;

/** Where the data of the first primary comes from. */
export type BootstrapSource =
  | { kind: "initdb" }
  | { kind: "baseBackup" }
  | { kind: "archive"; endpointCa: EndpointCa | undefined }
  | {
      kind: "snapshots";
      sources: PvcSources;
      backupLabel: string | undefined;
      tablespaceMap: string | undefined;
      endpointCa: EndpointCa | undefined;
    }
  /** Cannot be told or used yet. */
  | { kind: "blocked"; because: string; requeueAfterMs: number; event: string };

/** A Backup object is looked for again after this time, incoherent snapshots after the other. */
const backupLookMs = 60_000;
const snapshotLookMs = 5_000;

/** Tells where the data of a new cluster comes from (reference: cluster controller §5.3, backup §7). */
export function chooseBootstrapSource(
  cluster: Cluster,
  observed: Pick<ObservedCluster, "backups" | "recoverySnapshots">,
): BootstrapSource {
  const { recovery, pg_basebackup: baseBackup } = cluster.spec.bootstrap ?? {};
  if (recovery) return chooseRecovery(cluster, recovery, observed);
  if (!baseBackup) return { kind: "initdb" };
  return missingExternal(cluster, "pg_basebackup", baseBackup.source) ?? { kind: "baseBackup" };
}

function chooseRecovery(
  cluster: Cluster,
  recovery: Recovery,
  observed: Pick<ObservedCluster, "backups" | "recoverySnapshots">,
): BootstrapSource {
  const backup = recovery.backup ? observed.backups.get(recovery.backup.name) : undefined;
  if (recovery.backup && backup?.status?.phase !== "completed")
    return missingBackup(cluster, recovery.backup.name, backup);
  if (recovery.source) {
    const missing = missingExternal(cluster, "recovery", recovery.source);
    if (missing) return missing;
  }
  const endpointCa = chooseEndpointCa(cluster, recovery, backup);
  const method = backup?.status?.method ?? backup?.spec.method;
  if (recovery.backup && method === "plugin") {
    return blocked(
      `Backup "${recovery.backup.name}" was taken by a plugin: recover from it by spec.bootstrap.recovery.source and ` +
        `recoveryTarget.backupID "${backup?.status?.backupId ?? ""}"`,
    );
  }
  const snapshots = backup && method === "volumeSnapshot" ? snapshotsOf(backup) : recovery.volumeSnapshots;
  if (backup && method === "volumeSnapshot" && !snapshots) {
    return blocked(`Backup "${recovery.backup?.name}" names no snapshot of a data volume`);
  }
  if (snapshots) return chooseSnapshots(snapshots, observed.recoverySnapshots ?? new Map(), endpointCa);
  if (backup || recovery.source) return { kind: "archive", endpointCa };
  return blocked("spec.bootstrap.recovery names nothing to recover from: set backup, source or volumeSnapshots");
}

function blocked(because: string, event = "InvalidBootstrap", requeueAfterMs = backupLookMs): BootstrapSource {
  return { kind: "blocked", because, requeueAfterMs, event };
}

function missingBackup(cluster: Cluster, name: string, backup: Backup | undefined): BootstrapSource {
  const full = `${clusterNamespace(cluster)}/${name}`;
  const because = backup
    ? `Backup object "${full}" is not completed: its phase is "${backup.status?.phase ?? ""}"`
    : `Backup object "${full}" is missing`;
  return blocked(because, "ErrorNoBackup");
}

function missingExternal(cluster: Cluster, method: string, source: string): BootstrapSource | undefined {
  if (cluster.spec.externalClusters?.some((it) => it.name === source)) return undefined;
  return blocked(`spec.bootstrap.${method}.source "${source}" is not among spec.externalClusters; add it there`);
}

/** Authority of the store to recover from: the recovery's own word first, then the Backup's, then the source's. */
function chooseEndpointCa(cluster: Cluster, recovery: Recovery, backup: Backup | undefined): EndpointCa | undefined {
  const external = cluster.spec.externalClusters?.find((it) => it.name === recovery.source)?.barmanObjectStore;
  const store = backup?.status ?? external;
  const reference = recovery.backup?.endpointCA ?? backup?.status?.endpointCA ?? external?.endpointCA;
  if (!reference?.name) return undefined;
  return { secretName: reference.name, key: reference.key, provider: store?.azureCredentials ? "azure" : "s3" };
}

function snapshotsOf(backup: Backup): SnapshotSet | undefined {
  const elements = backup.status?.snapshotBackupStatus?.elements ?? [];
  const reference = (name: string): TypedLocalObjectReference => ({
    apiGroup: "snapshot.storage.k8s.io",
    kind: "VolumeSnapshot",
    name,
  });
  const data = elements.find((it) => it.type === "PG_DATA");
  const wal = elements.find((it) => it.type === "PG_WAL");
  const tablespaces = elements.filter((it) => it.type === "PG_TABLESPACE" && it.tablespaceName);
  if (!data) return undefined;
  return {
    storage: reference(data.name),
    ...(wal ? { walStorage: reference(wal.name) } : {}),
    ...(tablespaces.length > 0
      ? {
          tablespaceStorage: Object.fromEntries(tablespaces.map((it) => [it.tablespaceName ?? "", reference(it.name)])),
        }
      : {}),
  };
}

function chooseSnapshots(
  { storage, walStorage, tablespaceStorage = {} }: SnapshotSet,
  snapshots: ByName<ObservedSnapshot>,
  endpointCa: EndpointCa | undefined,
): BootstrapSource {
  const slots = [
    { role: "PG_DATA", source: storage },
    ...(walStorage ? [{ role: "PG_WAL", source: walStorage }] : []),
    ...Object.values(tablespaceStorage).map((source) => ({ role: "PG_TABLESPACE", source })),
  ].filter(({ source }) => source.kind === "VolumeSnapshot");
  const names = new Set<string>();
  for (const { role, source } of slots) {
    const { metadata } = snapshots.get(source.name) ?? {};
    const marks = { ...metadata?.annotations, ...metadata?.labels };
    const shown = marks[labels.pvcRole];
    if (!metadata) return incoherent(`VolumeSnapshot ${source.name} does not exist`);
    if (shown && shown !== role) {
      return incoherent(`VolumeSnapshot ${source.name} holds ${shown} and cannot be used for ${role}`);
    }
    names.add(marks[labels.backupName] ?? "");
  }
  if (names.size > 1)
    return incoherent(`the volume snapshots belong to different backups: ${[...names].sort().join(", ")}`);
  const data = snapshots.get(storage.name)?.metadata.annotations;
  return {
    kind: "snapshots",
    sources: {
      data: storage,
      ...(walStorage ? { wal: walStorage } : {}),
      ...(Object.keys(tablespaceStorage).length > 0 ? { tablespaces: tablespaceStorage } : {}),
    },
    backupLabel: data?.[annotations.backupLabelFile],
    tablespaceMap: data?.[annotations.backupTablespaceMapFile],
    endpointCa,
  };
}

function incoherent(because: string): BootstrapSource {
  return blocked(because, "InvalidVolumeSnapshot", snapshotLookMs);
}
