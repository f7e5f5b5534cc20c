/** TCP ports of an instance pod and of the operator (reference: cluster controller §2.2). */
export const ports = {
  postgres: 5432,
  status: 8000,
  metrics: 9187,
  localWeb: 8010,
  pprof: 6060,
  /** The profiler of a plugin's sidecar, which shares the pod's network with the instance manager's. */
  sidecarPprof: 6061,
  operatorWebhook: 9443,
  operatorMetrics: 8080,
} as const;

/** Folders and files inside an instance pod (reference: instance manager §2, ADR 0001). */
export const paths = {
  pgData: "/var/lib/postgresql/data/pgdata",
  dataVolume: "/var/lib/postgresql/data",
  walVolume: "/var/lib/postgresql/wal",
  walDir: "/var/lib/postgresql/wal/pg_wal",
  tablespaces: "/var/lib/postgresql/tablespaces",
  scratch: "/controller",
  manager: "/controller/manager",
  tmp: "/controller/tmp",
  socketDir: "/controller/run",
  certificates: "/controller/certificates",
  log: "/controller/log",
  ipc: "/controller/ipc",
  external: "/controller/external",
} as const;

/** PostgreSQL roles that belong to the system. */
export const roles = {
  superuser: "postgres",
  replication: "streaming_replica",
  pooler: "cnpg_pooler_pgbouncer",
  metrics: "cnpg_metrics_exporter",
} as const;

/** Version of CloudNativePG that the objects and answers claim to be compatible with. */
export const compatibleVersion = "1.30.0";

/** Exit code of the postgres container when the WAL volume is full. */
export const exitCodeDiskFull = 4;

/** API group and version of the eleven compatible kinds. */
export const cnpgGroup = "postgresql.cnpg.io";
export const cnpgVersion = "v1";
export const cnpgApiVersion = "postgresql.cnpg.io/v1";

/** Value of `status.targetPrimary` while a failover waits for the WAL receivers. */
export const pendingPrimary = "pending";

/** API group and version of the barman-cloud plugin's ObjectStore. */
export const barmanApiVersion = "barmancloud.cnpg.io/v1";
