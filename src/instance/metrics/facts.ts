import type { Cluster } from "../../api/generated/cluster.ts";
import type { Logger } from "../../ports/logger.ts";
import type { SqlRawSession } from "../../ports/sql-session.ts";
import type { RuntimeFacts } from "../../runtime/runtime-facts.ts";
import type { SampleSet } from "./sample-set.ts";

/** What the exporter has to know about the instance it runs in. */
export interface InstanceFacts {
  podName: string;
  /** By the files of PGDATA. */
  isPrimary: boolean;
  isFenced: boolean;
  /** PostgreSQL is stopped or being restarted on purpose; SQL metrics are left out. */
  mightBeUnavailable: boolean;
}

/** A text with monitoring queries, in the order in which later ones replace earlier ones of the same name. */
export interface QuerySource {
  /** For messages, for example `ConfigMap cnpg-default-monitoring/queries`. */
  name: string;
  yaml: string;
}

export interface MetricsCollectorOptions {
  /** Opens a session in a database as the metrics role; see `metricsTarget`. */
  connect(database: string, signal?: AbortSignal): Promise<SqlRawSession>;
  /** The Cluster as last seen; `undefined` before the first time. */
  cluster(): Cluster | undefined;
  instance(): InstanceFacts;
  /** The user's and the default queries that could be read. */
  querySources(): readonly QuerySource[];
  /** Adds what the plugins of the pod measure; fails when they cannot be asked. */
  plugins?(samples: SampleSet): Promise<void>;
  /** What the program tells of itself. @default - nothing */
  runtime?(): Promise<RuntimeFacts>;
  clock: { now(): number; monotonicMs(): number };
  logger: Logger;
}

/** Counts failed steps by the names the original uses. */
export type CollectorStep =
  | "Collect.cnpg"
  | "Collect.PgWALArchiveStats"
  | "Collect.PGWalSettings"
  | "Collect.PGVersion"
  | "Collect.PGWALStat"
  | "Collect.NodesUsed"
  | "Collect.SynchronousStandbys"
  | "Collect.LastFailedBackupTimestamp"
  | "Collect.LastAvailableBackupTimestamp"
  | "Collect.FirstRecoverabilityPoint"
  | "Collect.PluginMetrics";
