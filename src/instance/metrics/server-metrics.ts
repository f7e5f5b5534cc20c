import type { Cluster } from "../../api/generated/cluster.ts";
import { parseQuantity } from "../../api/quantity.ts";
import type { SqlRawSession } from "../../ports/sql-session.ts";
import { formatServerVersion, majorOfServerVersion } from "../../postgres/pg-version.ts";
import { clusterLabel, collectorGauge, syncReplicas } from "./cluster-metrics.ts";
import type { CollectorStep, InstanceFacts } from "./facts.ts";
import type { SampleSet } from "./sample-set.ts";

export interface ServerMetricsContext {
  session: SqlRawSession;
  samples: SampleSet;
  cluster: Cluster | undefined;
  instance: InstanceFacts;
  /** `server_version_num`. */
  serverVersion: number;
}

/** A step of the built-in collector; each may fail without the others. */
export interface ServerStep {
  step: CollectorStep;
  run(context: ServerMetricsContext): Promise<void>;
}

/** The built-in questions to PostgreSQL. */
export const serverSteps: readonly ServerStep[] = [
  { step: "Collect.PGVersion", run: addVersion },
  { step: "Collect.SynchronousStandbys", run: addObservedStandbys },
  { step: "Collect.PgWALArchiveStats", run: addArchiveStatus },
  { step: "Collect.PGWalSettings", run: addWalFiles },
  { step: "Collect.PGWALStat", run: addWalStatistics },
];

async function addVersion({ samples, cluster, serverVersion }: ServerMetricsContext): Promise<void> {
  const full = formatServerVersion(serverVersion);
  const family = collectorGauge("postgres_version", "Version of PostgreSQL; the label has it exactly");
  samples.add(family, { full, ...clusterLabel(cluster) }, Number(full));
}

async function addObservedStandbys({ session, samples, instance }: ServerMetricsContext): Promise<void> {
  if (!instance.isPrimary) return;
  const labels = { value: "observed" };
  try {
    const { rows } = await session.queryRaw("SELECT pg_catalog.current_setting('synchronous_standby_names')");
    samples.add(syncReplicas, labels, countSynchronous(rows[0]?.[0] ?? ""));
  } catch (error) {
    samples.add(syncReplicas, labels, -1);
    throw error;
  }
}

/** Number in `synchronous_standby_names`; a bare list of names means one. */
export function countSynchronous(setting: string): number {
  if (setting.trim() === "") return 0;
  const match = /^\s*(?:(?:ANY|FIRST)\s+)?(\d+)\s*\(/i.exec(setting);
  return match ? Number(match[1]) : 1;
}

const archiveStatusQuery = `
  SELECT count(*) FILTER (WHERE name LIKE '%.ready'), count(*) FILTER (WHERE name LIKE '%.done')
    FROM pg_catalog.pg_ls_archive_statusdir()`;

async function addArchiveStatus({ session, samples }: ServerMetricsContext): Promise<void> {
  const { rows } = await session.queryRaw(archiveStatusQuery);
  const family = collectorGauge(
    "pg_wal_archive_status",
    "Number of WAL files that wait to be archived or are archived",
  );
  samples.add(family, { value: "ready" }, Number(rows[0]?.[0] ?? Number.NaN));
  samples.add(family, { value: "done" }, Number(rows[0]?.[1] ?? Number.NaN));
}

const walFilesQuery = `
  SELECT f.count, f.size
       , s.min_wal_size * 1048576 / s.segment, s.max_wal_size * 1048576 / s.segment
       , s.wal_keep_size * 1048576 / s.segment
       , CASE WHEN s.slots = -1 THEN NULL ELSE s.slots * 1048576 / s.segment END
       , s.segment
    FROM (SELECT count(*) AS count, coalesce(sum(size), 0) AS size FROM pg_catalog.pg_ls_waldir()
           WHERE name ~ '^[0-9A-F]{24}$') AS f
       , (SELECT max(setting) FILTER (WHERE name = 'wal_segment_size')::bigint AS segment
               , max(setting) FILTER (WHERE name = 'min_wal_size')::bigint AS min_wal_size
               , max(setting) FILTER (WHERE name = 'max_wal_size')::bigint AS max_wal_size
               , max(setting) FILTER (WHERE name = 'wal_keep_size')::bigint AS wal_keep_size
               , max(setting) FILTER (WHERE name = 'max_slot_wal_keep_size')::bigint AS slots
            FROM pg_catalog.pg_settings) AS s`;

async function addWalFiles({ session, samples, cluster }: ServerMetricsContext): Promise<void> {
  const { rows } = await session.queryRaw(walFilesQuery);
  const values = (rows[0] ?? []).map((text) => (text === null ? Number.NaN : Number(text)));
  const [count, size, min, max, keep, slotsMax, segment] = values;
  const volumeBytes = walVolumeBytes(cluster);
  const family = collectorGauge(
    "pg_wal",
    "WAL files: how many there are and may be, sizes in bytes, limits in segments",
  );
  const add = (value: string, number: number | undefined) => samples.add(family, { value }, number ?? Number.NaN);
  add("count", count);
  add("size", size);
  add("min", min);
  add("max", max);
  add("keep", keep);
  add("slots_max", slotsMax);
  add("volume_size", volumeBytes);
  add("volume_max", Math.floor(volumeBytes / (segment ?? Number.NaN)));
}

function walVolumeBytes(cluster: Cluster | undefined): number {
  const size = cluster?.spec.walStorage?.size;
  const billionths = size === undefined ? undefined : parseQuantity(size);
  return billionths === undefined ? Number.NaN : Number(billionths / 1_000_000_000n);
}

const walStatistics = ["wal_records", "wal_fpi", "wal_bytes", "wal_buffers_full"] as const;
/** Moved to pg_stat_io in 18. */
const walWriteStatistics = ["wal_write", "wal_sync", "wal_write_time", "wal_sync_time"] as const;

const walHelp: Readonly<Record<string, string>> = {
  wal_records: "WAL records generated",
  wal_fpi: "Full page images in the WAL",
  wal_bytes: "Bytes of WAL generated",
  wal_buffers_full: "Times that WAL was written because its buffers were full",
  wal_write: "Times that WAL buffers were written to disk",
  wal_sync: "Times that WAL files were synced to disk",
  wal_write_time: "Milliseconds spent writing WAL buffers",
  wal_sync_time: "Milliseconds spent syncing WAL files",
};

async function addWalStatistics({ session, samples, serverVersion }: ServerMetricsContext): Promise<void> {
  const major = majorOfServerVersion(serverVersion);
  if (major < 14) return;
  const columns = major < 18 ? [...walStatistics, ...walWriteStatistics] : walStatistics;
  const { rows } = await session.queryRaw(
    `SELECT pg_catalog.to_char(stats_reset AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), ${columns.join(", ")}
       FROM pg_catalog.pg_stat_wal`,
  );
  const [reset, ...values] = rows[0] ?? [];
  for (const [index, column] of columns.entries()) {
    const family = collectorGauge(column, walHelp[column] ?? column);
    samples.add(family, { stats_reset: reset ?? "" }, Number(values[index] ?? Number.NaN));
  }
}
