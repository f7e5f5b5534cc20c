import { paths, ports } from "../api/constants.ts";

/** Everything that flags and environment tell an instance manager, compiled once. */
export interface InstanceSettings {
  /** Name of the pod; in a job, of the job. */
  podName: string;
  namespace: string;
  clusterName: string;
  pgData: string;
  /** Folder that `pg_wal` is a link to; `undefined` when WAL lives in PGDATA. */
  pgWal: string | undefined;
  /** Host that `join` clones from. */
  parentNode: string | undefined;
  /** Folder of our own files, `/controller` in a pod. */
  scratch: string;
  walVolume: string;
  tablespaces: string;
  postgresPort: number;
  statusPort: number;
  localPort: number;
  metricsPort: number;
  /** Port of the profiler; `undefined` when there is to be none. */
  pprofPort: number | undefined;
  /** Host and port of the primary when they are not `<cluster>-rw` and 5432. */
  primaryHost: string;
  primaryPort: number;
  statusTls: boolean;
  metricsTls: boolean;
  /** Value of `CNPG_STANDBY_TCP_USER_TIMEOUT`. */
  tcpUserTimeout: string | undefined;
  /** Name of the postgres program. */
  postgresName: string;
  environment: Readonly<Record<string, string>>;
}

/** Flags of the `instance` commands; a flag that is not given falls back to the environment. */
export interface InstanceFlags {
  podName?: string;
  namespace?: string;
  clusterName?: string;
  pgData?: string;
  pgWal?: string;
  parentNode?: string;
  pprofServer?: boolean;
  statusPortTls?: boolean;
  metricsPortTls?: boolean;
}

function required(value: string | undefined, flag: string, variable: string): string {
  if (value) return value;
  throw new Error(`${flag} is missing: give the flag or set ${variable}`);
}

function portOf(text: string | undefined, otherwise: number): number {
  if (!text) return otherwise;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`"${text}" is not a port number`);
  return port;
}

/** Compiles flags and environment; `CNPG_TS_*` variables move what tests on a plain host cannot have at its usual place. */
export function compileInstanceSettings(
  flags: InstanceFlags,
  environment: Readonly<Record<string, string | undefined>>,
): InstanceSettings {
  const clusterName = required(flags.clusterName ?? environment["CLUSTER_NAME"], "--cluster-name", "CLUSTER_NAME");
  const scratch = environment["CNPG_TS_ROOT"] || paths.scratch;
  return {
    podName: required(flags.podName ?? environment["POD_NAME"], "--pod-name", "POD_NAME"),
    namespace: required(flags.namespace ?? environment["NAMESPACE"], "--namespace", "NAMESPACE"),
    clusterName,
    pgData: required(flags.pgData ?? environment["PGDATA"], "--pg-data", "PGDATA"),
    pgWal: flags.pgWal || undefined,
    parentNode: flags.parentNode || undefined,
    scratch,
    walVolume: environment["CNPG_TS_WAL_VOLUME"] || paths.walVolume,
    tablespaces: environment["CNPG_TS_TABLESPACES"] || paths.tablespaces,
    postgresPort: portOf(environment["PGPORT"], ports.postgres),
    statusPort: portOf(environment["CNPG_TS_STATUS_PORT"], ports.status),
    localPort: portOf(environment["CNPG_TS_LOCAL_PORT"], ports.localWeb),
    metricsPort: portOf(environment["CNPG_TS_METRICS_PORT"], ports.metrics),
    pprofPort: flags.pprofServer ? portOf(environment["CNPG_TS_PPROF_PORT"], ports.pprof) : undefined,
    primaryHost: environment["CNPG_TS_PRIMARY_HOST"] || `${clusterName}-rw`,
    primaryPort: portOf(environment["CNPG_TS_PRIMARY_PORT"], ports.postgres),
    statusTls: flags.statusPortTls ?? false,
    metricsTls: flags.metricsPortTls ?? false,
    tcpUserTimeout: environment["CNPG_STANDBY_TCP_USER_TIMEOUT"] || undefined,
    postgresName: environment["POSTGRES_NAME"] || "postgres",
    environment: Object.fromEntries(
      Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  };
}
