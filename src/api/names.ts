/** Name of the instance with a serial; also the name of its pod and of its data volume. */
export function instanceName(cluster: string, serial: number): string {
  return `${cluster}-${serial}`;
}

/** Names of the children of a cluster that exist once (reference: cluster controller §2.1). */
export function childNames(cluster: string) {
  return {
    /** Shared by server and client certificates unless the user brings an authority. */
    ca: `${cluster}-ca`,
    server: `${cluster}-server`,
    replication: `${cluster}-replication`,
    pooler: `${cluster}-pooler`,
    superuser: `${cluster}-superuser`,
    app: `${cluster}-app`,
    pull: `${cluster}-pull`,
    rw: `${cluster}-rw`,
    r: `${cluster}-r`,
    ro: `${cluster}-ro`,
    any: `${cluster}-any`,
    primaryPdb: `${cluster}-primary`,
    replicaPdb: cluster,
    /** ServiceAccount (unless the user names one), Role, RoleBinding, Lease, FailoverQuorum and PodMonitor share it. */
    shared: cluster,
  } as const;
}

/** Name of the ConfigMap and Secret with the default monitoring queries, and the key that holds them. */
export const defaultMonitoringName = "cnpg-default-monitoring";
export const defaultMonitoringKey = "queries";

/** Name of an instance's WAL volume. */
export function walPvcName(instance: string): string {
  return `${instance}-wal`;
}

/** A tablespace's name as Kubernetes object names can carry it. */
export function tablespaceVolumeName(tablespace: string): string {
  return tablespace.replace(/^_/, "1").replaceAll("$", "-").replaceAll("_", "-").toLowerCase();
}

/** Name of an instance's volume for a tablespace. */
export function tablespacePvcName(instance: string, tablespace: string): string {
  return `${instance}-tbs-${tablespaceVolumeName(tablespace)}`;
}

/** An extension's name as volume names can carry it. */
export function extensionVolumeName(extension: string): string {
  return extension.replaceAll("_", "-");
}

/** What a Job does to the volumes of the instance it prepares. */
export type JobRole =
  | "initdb"
  | "import"
  | "full-recovery"
  | "snapshot-recovery"
  | "pgbasebackup"
  | "join"
  | "major-upgrade";

/** Name of the Job that prepares an instance. */
export function jobName(instance: string, role: JobRole): string {
  return `${instance}-${role}`;
}

/** Serial at the end of an instance's name; `undefined` when the name is not one of the cluster's. */
export function parseInstanceSerial(cluster: string, instance: string): number | undefined {
  const suffix = instance.startsWith(`${cluster}-`) ? instance.slice(cluster.length + 1) : "";
  return /^[1-9][0-9]*$/.test(suffix) ? Number(suffix) : undefined;
}
