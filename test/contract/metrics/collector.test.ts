import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defaultMonitoringQueries } from "../../../src/api/default-monitoring.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { createMetricsCollector, metricsTarget } from "../../../src/instance/metrics/collector.ts";
import type { InstanceFacts, MetricsCollectorOptions } from "../../../src/instance/metrics/facts.ts";
import type { Logger } from "../../../src/ports/logger.ts";
import type { SqlTarget } from "../../../src/ports/sql-session.ts";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";

let primary: PostgresServer;
let standby: PostgresServer;
let major: number;
let now = 1_000_000_000_000;
let warnings: string[] = [];
const sql = createSqlConnector();

const logger: Logger = {
  error: () => undefined,
  warning: (message, fields) => warnings.push(`${message}: ${String(fields?.["error"] ?? fields?.["reason"])}`),
  info: () => undefined,
  debug: () => undefined,
  trace: () => undefined,
  child: () => logger,
};

const cluster: Cluster = {
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: { name: "obs", namespace: "obs" },
  spec: {
    instances: 2,
    storage: { size: "1Gi" },
    walStorage: { size: "1Gi" },
    bootstrap: { initdb: { database: "app", owner: "app" } },
    postgresql: { synchronous: { method: "any", number: 1 } },
  },
  status: {
    currentPrimary: "obs-1",
    firstRecoverabilityPoint: "2026-11-30T00:00:00Z",
    topology: { successfullyExtracted: true, nodesUsed: 1, instances: {} },
  },
};

function superuser(server: PostgresServer, database = "postgres"): SqlTarget {
  return { host: server.socketDir, port: server.port, user: "postgres", database, applicationName: "setup" };
}

beforeAll(async () => {
  primary = await startPostgres({ settings: { archive_mode: "on", archive_command: "true" } });
  const setup = await sql.connect(superuser(primary));
  const [version] = await setup.query<{ major: number }>(
    "SELECT current_setting('server_version_num')::int4 / 10000 AS major",
  );
  major = version?.major ?? 0;
  await setup.query("CREATE ROLE cnpg_metrics_exporter LOGIN IN ROLE pg_monitor");
  await setup.query("CREATE DATABASE app");
  await setup.query("SELECT pg_create_physical_replication_slot('_cnpg_obs_2')");
  await setup.close();
  standby = await startPostgres({ standbyOf: primary, settings: { hot_standby: "on" } });
});

afterAll(async () => {
  await standby?.stop();
  await primary?.stop();
});

function collectorOf(server: PostgresServer, changes: Partial<MetricsCollectorOptions> = {}, facts = {}) {
  const instance: InstanceFacts = {
    podName: server === primary ? "obs-1" : "obs-2",
    isPrimary: server === primary,
    isFenced: false,
    mightBeUnavailable: false,
    ...facts,
  };
  warnings = [];
  return createMetricsCollector({
    connect: (database, signal) => sql.connect(metricsTarget(server.socketDir, server.port, database), signal),
    cluster: () => cluster,
    instance: () => instance,
    querySources: () => [{ name: "defaults", yaml: defaultMonitoringQueries }],
    clock: { now: () => now, monotonicMs: () => performance.now() },
    logger,
    ...changes,
  });
}

function userQueries(yaml: string) {
  return collectorOf(primary, { querySources: () => [{ name: "user", yaml }] });
}

/** Values by series. */
function parse(text: string): Map<string, number> {
  const series = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const at = line.lastIndexOf(" ");
    expect(series.has(line.slice(0, at))).toBe(false);
    series.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return series;
}

function namesOf(text: string): string[] {
  return [...new Set([...text.matchAll(/^(cnpg_[a-z0-9_]+)/gm)].map((match) => match[1] ?? ""))].sort();
}

const collectorNames = `collection_duration_seconds collections_total fencing_on first_recoverability_point
  last_available_backup_timestamp last_collection_error last_failed_backup_timestamp lo_pages
  manual_switchover_required nodes_used pg_wal pg_wal_archive_status postgres_version replica_mode sync_replicas up
  wal_buffers_full wal_bytes wal_fpi wal_records`;
const walWriteNames = "wal_sync wal_sync_time wal_write wal_write_time";
const queryNames = `backends_max_tx_duration_seconds backends_total backends_waiting_total cache_hits cache_miss last_error
  last_update_timestamp pg_database_mxid_age pg_database_size_bytes pg_database_xid_age pg_extensions_update_available
  pg_postmaster_start_time pg_replication_in_recovery pg_replication_is_wal_receiver_up pg_replication_lag
  pg_replication_streaming_replicas pg_settings_setting pg_stat_database_blk_read_time pg_stat_database_blk_write_time
  pg_stat_database_blks_hit pg_stat_database_blks_read pg_stat_database_conflicts pg_stat_database_deadlocks
  pg_stat_database_temp_bytes pg_stat_database_temp_files pg_stat_database_tup_deleted pg_stat_database_tup_fetched
  pg_stat_database_tup_inserted pg_stat_database_tup_returned pg_stat_database_tup_updated
  pg_stat_database_xact_commit pg_stat_database_xact_rollback pg_stat_bgwriter_buffers_alloc
  pg_stat_bgwriter_buffers_clean pg_stat_bgwriter_maxwritten_clean`;
const oldWriterNames = `pg_stat_bgwriter_buffers_backend pg_stat_bgwriter_buffers_backend_fsync
  pg_stat_bgwriter_buffers_checkpoint pg_stat_bgwriter_checkpoint_sync_time pg_stat_bgwriter_checkpoint_write_time
  pg_stat_bgwriter_checkpoints_req pg_stat_bgwriter_checkpoints_timed`;
const checkpointerNames = `pg_stat_bgwriter_stats_reset_time pg_stat_checkpointer_buffers_written
  pg_stat_checkpointer_checkpoints_req pg_stat_checkpointer_checkpoints_timed pg_stat_checkpointer_restartpoints_done
  pg_stat_checkpointer_restartpoints_req pg_stat_checkpointer_restartpoints_timed
  pg_stat_checkpointer_stats_reset_time pg_stat_checkpointer_sync_time pg_stat_checkpointer_write_time`;
const primaryNames = `pg_replication_slots_active pg_replication_slots_pg_wal_lsn_diff pg_stat_archiver_archived_count
  pg_stat_archiver_failed_count pg_stat_archiver_last_archived_time pg_stat_archiver_last_archived_wal_start_lsn
  pg_stat_archiver_last_failed_time pg_stat_archiver_last_failed_wal_start_lsn
  pg_stat_archiver_seconds_since_last_archival pg_stat_archiver_seconds_since_last_failure
  pg_stat_archiver_stats_reset_time pg_stat_replication_backend_start pg_stat_replication_backend_xmin_age
  pg_stat_replication_flush_diff_bytes pg_stat_replication_flush_lag_seconds pg_stat_replication_replay_diff_bytes
  pg_stat_replication_replay_lag_seconds pg_stat_replication_sent_diff_bytes pg_stat_replication_write_diff_bytes
  pg_stat_replication_write_lag_seconds`;

/** Names that a server of this version has to give, as seen on the original. */
function expectedNames(isPrimary: boolean): string[] {
  const words = (text: string, prefix: string) => text.split(/\s+/).map((word) => `${prefix}${word}`);
  return [
    ...words(collectorNames, "cnpg_collector_"),
    ...(major < 18 ? words(walWriteNames, "cnpg_collector_") : []),
    ...words(queryNames, "cnpg_"),
    ...words(major < 17 ? oldWriterNames : checkpointerNames, "cnpg_"),
    ...(isPrimary ? words(primaryNames, "cnpg_") : []),
  ].sort();
}

describe("a scrape", () => {
  it("of a primary has every built-in and default metric", async () => {
    const collector = collectorOf(primary);
    const text = await collector.collect();
    expect(warnings).toEqual([]);
    expect(namesOf(text)).toEqual(expectedNames(true));
    const series = parse(text);
    expect(Object.fromEntries(series)).toMatchObject({
      'cnpg_collector_up{cluster="obs"}': 1,
      cnpg_collector_collections_total: 1,
      cnpg_collector_last_collection_error: 0,
      cnpg_collector_nodes_used: 1,
      cnpg_collector_first_recoverability_point: 1_795_996_800,
      'cnpg_collector_sync_replicas{value="expected"}': 1,
      'cnpg_collector_sync_replicas{value="observed"}': 0,
      'cnpg_collector_pg_wal{value="keep"}': 0,
      'cnpg_collector_pg_wal{value="max"}': 64,
      'cnpg_collector_pg_wal{value="min"}': 5,
      'cnpg_collector_pg_wal{value="slots_max"}': Number.NaN,
      'cnpg_collector_pg_wal{value="volume_max"}': 64,
      'cnpg_collector_pg_wal{value="volume_size"}': 1_073_741_824,
      'cnpg_collector_lo_pages{datname="app"}': 0,
      'cnpg_collector_lo_pages{datname="postgres"}': 0,
      cnpg_last_error: 0,
      cnpg_last_update_timestamp: now / 1000,
      cnpg_pg_replication_streaming_replicas: 1,
      cnpg_pg_replication_in_recovery: 0,
      'cnpg_pg_replication_slots_active{database="",slot_name="_cnpg_obs_2",slot_type="physical"}': 0,
      'cnpg_pg_settings_setting{name="max_connections"}': 100,
      'cnpg_pg_settings_setting{name="fsync"}': 0,
    });
    expect(series.get('cnpg_collector_pg_wal{value="count"}')).toBeGreaterThan(0);
    expect(text).toMatch(/cnpg_collector_wal_records\{stats_reset="\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z"\} \d+/);
    expect(text).toContain("# TYPE cnpg_pg_stat_archiver_archived_count counter");
    expect(text).toMatch(
      /^cnpg_pg_extensions_update_available\{datname="app",default_version="1.0",extname="plpgsql",installed_version="1.0"\} 0$/m,
    );
  });

  it("of a standby has the metrics of a standby", async () => {
    const text = await collectorOf(standby).collect();
    expect(warnings).toEqual([]);
    expect(namesOf(text)).toEqual(expectedNames(false));
    expect(Object.fromEntries(parse(text))).toMatchObject({
      cnpg_pg_replication_in_recovery: 1,
      cnpg_pg_replication_is_wal_receiver_up: 1,
      cnpg_collector_first_recoverability_point: 0,
    });
    expect(text).not.toContain('value="observed"');
  });

  it("of a fenced instance asks PostgreSQL nothing", async () => {
    const connect = () => Promise.reject(new Error("must not be called"));
    const series = parse(await collectorOf(primary, { connect }, { isFenced: true }).collect());
    expect(series.get("cnpg_collector_fencing_on")).toBe(1);
    expect([...series.keys()].some((name) => name.startsWith("cnpg_collector_up"))).toBe(false);
  });

  it("of a server that is down says so", async () => {
    const connect = (database: string) => sql.connect(metricsTarget(primary.socketDir, 1, database));
    const series = parse(await collectorOf(primary, { connect }).collect());
    expect(series.get('cnpg_collector_up{cluster="obs"}')).toBe(0);
    expect(series.get("cnpg_collector_last_collection_error")).toBe(1);
    expect(series.get('cnpg_collector_collection_errors_total{collector="Collect.cnpg"}')).toBe(1);
  });

  it("falls back to database postgres until the application's exists", async () => {
    const named = structuredClone(cluster);
    named.spec.bootstrap = { initdb: { database: "later", owner: "later" } };
    const series = parse(await collectorOf(primary, { cluster: () => named }).collect());
    expect(series.get('cnpg_collector_up{cluster="obs"}')).toBe(1);
    expect(series.get("cnpg_last_error")).toBe(0);
  });

  it("loses only the queries for a database that is closed to the exporter", async () => {
    const setup = await sql.connect(superuser(primary));
    await setup.query("REVOKE CONNECT ON DATABASE app FROM PUBLIC");
    const text = await collectorOf(primary).collect();
    await setup.query("GRANT CONNECT ON DATABASE app TO PUBLIC");
    const series = parse(text);
    expect(series.get('cnpg_collector_up{cluster="obs"}')).toBe(1);
    expect(series.get("cnpg_collector_last_collection_error")).toBe(0);
    expect(series.get('cnpg_collector_pg_wal{value="min"}')).toBeGreaterThan(0);
    expect(series.get('cnpg_collector_lo_pages{datname="postgres"}')).toBe(0);
    expect(series.get("cnpg_backends_waiting_total")).toBeUndefined();
    expect(series.get("cnpg_last_error")).toBe(1);
    await setup.query("ALTER ROLE cnpg_metrics_exporter NOLOGIN");
    const refused = parse(await collectorOf(primary).collect());
    await setup.query("ALTER ROLE cnpg_metrics_exporter LOGIN");
    await setup.close();
    expect(refused.get('cnpg_collector_up{cluster="obs"}')).toBe(1);
    expect(refused.get("cnpg_collector_last_collection_error")).toBe(1);
  });

  it("that comes while one is under way shares its answer", async () => {
    const collector = collectorOf(primary);
    const [one, two] = await Promise.all([collector.collect(), collector.collect()]);
    expect(one).toBe(two);
  });
});

describe("the cache of query results", () => {
  const yaml = `clock: { query: "SELECT extract(epoch FROM clock_timestamp()) AS t", metrics: [ { t: { usage: GAUGE } } ] }`;

  it("lasts as long as the Cluster says", async () => {
    const quick = structuredClone(cluster);
    quick.spec.monitoring = { metricsQueriesTTL: "10s" };
    const collector = collectorOf(primary, {
      cluster: () => quick,
      querySources: () => [{ name: "user", yaml }],
    });
    const value = async () => parse(await collector.collect()).get("cnpg_clock_t");
    const first = await value();
    now += 9_000;
    expect(await value()).toBe(first);
    now += 2_000;
    expect(await value()).not.toBe(first);
    const series = parse(await collector.collect());
    expect([series.get("cnpg_cache_hits"), series.get("cnpg_cache_miss")]).toEqual([2, 2]);
  });

  it("lasts longer for a query that says so, and not for the others", async () => {
    const slow = yaml.replace("clock: {", "slow: { cache_seconds: 120,");
    const collector = collectorOf(primary, { querySources: () => [{ name: "user", yaml: `${yaml}\n${slow}` }] });
    const read = async () => {
      const series = parse(await collector.collect());
      return { clock: series.get("cnpg_clock_t"), slow: series.get("cnpg_slow_t") };
    };
    const first = await read();
    expect(first.slow).toBeGreaterThan(0);
    now += 31_000;
    const second = await read();
    expect(second.clock).not.toBe(first.clock);
    expect(second.slow).toBe(first.slow);
    now += 100_000;
    expect((await read()).slow).not.toBe(first.slow);
  });

  it("ends when the queries change", async () => {
    const sources = [{ name: "user", yaml }];
    const collector = collectorOf(primary, { querySources: () => sources });
    await collector.collect();
    sources[0] = { name: "user", yaml: yaml.replaceAll("clock:", "watch:") };
    const text = await collector.collect();
    expect(text).toContain("cnpg_watch_t ");
    expect(text).not.toContain("cnpg_clock_t");
  });
});

describe("user queries", () => {
  it("map every kind of column", async () => {
    const series = parse(
      await userQueries(`
kinds:
  name: things
  query: |
    SELECT 'a"b' AS label, true AS flag, 42::bigint AS counted, 1.5 AS amount, 'up' AS state, '1m3s' AS took, 'x' AS skipped,
      timestamptz '2026-11-30 00:00:00.25+00' AS at, null::int AS missing, '12.5' AS worded,
      ARRAY[0.1, 1] AS h, ARRAY[1, 3] AS h_bucket, 2.5 AS h_sum, 4 AS h_count
  metrics:
    - label: { usage: LABEL }
    - flag: { usage: LABEL, name: is_it }
    - counted: { usage: COUNTER, description: "How many" }
    - amount: { usage: GAUGE, name: total }
    - state: { usage: MAPPEDMETRIC, metric_mapping: { up: 2, down: -1 } }
    - took: { usage: DURATION }
    - skipped: { usage: DISCARD }
    - at: { usage: GAUGE }
    - missing: { usage: GAUGE }
    - worded: { usage: GAUGE }
    - h: { usage: HISTOGRAM }
`).collect(),
    );
    expect(warnings).toEqual([]);
    const labels = 'is_it="true",label="a\\"b"';
    const own = Object.fromEntries([...series].filter(([name]) => name.startsWith("cnpg_things")));
    expect(own).toEqual({
      [`cnpg_things_counted{${labels}}`]: 42,
      [`cnpg_things_total{${labels}}`]: 1.5,
      [`cnpg_things_state{${labels}}`]: 2,
      [`cnpg_things_took_milliseconds{${labels}}`]: 63_000,
      [`cnpg_things_at{${labels}}`]: 1_795_996_800.25,
      [`cnpg_things_missing{${labels}}`]: Number.NaN,
      [`cnpg_things_worded{${labels}}`]: 12.5,
      [`cnpg_things_h_bucket{is_it="true",label="a\\"b",le="0.1"}`]: 1,
      [`cnpg_things_h_bucket{is_it="true",label="a\\"b",le="1"}`]: 3,
      [`cnpg_things_h_bucket{is_it="true",label="a\\"b",le="+Inf"}`]: 4,
      [`cnpg_things_h_sum{${labels}}`]: 2.5,
      [`cnpg_things_h_count{${labels}}`]: 4,
    });
  });

  it("are chosen by server version, role and predicate", async () => {
    const metrics = "metrics: [ { v: { usage: GAUGE } } ]";
    const text = await userQueries(`
wrong_version: { query: "SELECT 1 AS v", runonserver: "<${major}.0.0", ${metrics} }
right_version: { query: "SELECT 1 AS v", runonserver: ">=${major}.0.0 <${major + 1}.0.0", ${metrics} }
no_row: { query: "SELECT 1 AS v", predicate_query: "SELECT true WHERE false", ${metrics} }
no: { query: "SELECT 1 AS v", predicate_query: "SELECT null::bool", ${metrics} }
yes: { query: "SELECT 1 AS v", predicate_query: "SELECT true", primary: true, ${metrics} }
first_of_many_no: { query: "SELECT 1 AS v", predicate_query: "VALUES (false, 1), (true, 2)", ${metrics} }
first_of_many_yes: { query: "SELECT 1 AS v", predicate_query: "VALUES (true, 1), (false, 2)", ${metrics} }
`).collect();
    const kept = ["cnpg_first_of_many_yes_v", "cnpg_right_version_v", "cnpg_yes_v"];
    expect(namesOf(text).filter((name) => name.endsWith("_v"))).toEqual(kept);
    expect(warnings).toEqual([]);
  });

  it("run in the databases that the patterns name", async () => {
    const series = parse(
      await userQueries(`
every: { query: "SELECT current_database() AS datname, 1 AS v", target_databases: ["*"], metrics: [ { datname: { usage: LABEL } }, { v: { usage: GAUGE } } ] }
some: { query: "SELECT current_database() AS datname, 1 AS v", target_databases: ["po*s", "gone"], metrics: [ { datname: { usage: LABEL } }, { v: { usage: GAUGE } } ] }
`).collect(),
    );
    const own = [...series.keys()].filter((name) => /^cnpg_(every|some)_/.test(name));
    expect(own).toEqual([
      'cnpg_every_v{datname="app"}',
      'cnpg_every_v{datname="postgres"}',
      'cnpg_some_v{datname="postgres"}',
    ]);
    expect(series.get('cnpg_errors_total{errorUserQueries="some"}')).toBe(1);
  });

  it("lose only the doubled sample, never the scrape", async () => {
    const text = await userQueries(`
twice:
  query: "SELECT l, v FROM (VALUES ('a', 1), ('a', 2), ('b', 3)) AS t(l, v)"
  metrics: [ { l: { usage: LABEL } }, { v: { usage: GAUGE } } ]
`).collect();
    const series = parse(text);
    expect([series.get('cnpg_twice_v{l="a"}'), series.get('cnpg_twice_v{l="b"}')]).toEqual([1, 3]);
    expect(series.get('cnpg_errors_total{errorUserQueries="twice"}')).toBe(1);
    expect(warnings[0]).toContain("two rows have the same labels");
  });

  it("cannot write, leave their transaction or keep a setting", async () => {
    const text = await userQueries(`
writes: { query: "SELECT 1 AS v FROM set_config('transaction_read_only', 'off', false), lo_create(0)", metrics: [ { v: { usage: GAUGE } } ] }
leaves: { query: "COMMIT; CREATE TEMP TABLE t (v int); SELECT 1 AS v", metrics: [ { v: { usage: GAUGE } } ] }
sets: { query: "SELECT length(set_config('search_path', 'elsewhere', false)) AS v", metrics: [ { v: { usage: GAUGE } } ] }
sees: { query: "SELECT (current_setting('search_path') = 'pg_catalog, public, pg_temp') AS v, current_user AS u", metrics: [ { v: { usage: GAUGE } }, { u: { usage: LABEL } } ] }
`).collect();
    const series = parse(text);
    expect(series.get('cnpg_sees_v{u="cnpg_metrics_exporter"}')).toBe(1);
    for (const name of ["writes", "leaves"]) {
      expect(series.get(`cnpg_errors_total{errorUserQueries="${name}"}`)).toBe(1);
      expect(series.has(`cnpg_${name}_v`)).toBe(false);
    }
  });

  it("that are wrong are counted and named, the others count", async () => {
    const series = parse(
      await userQueries(`
fails: { query: "SELECT 1/0 AS v", metrics: [ { v: { usage: GAUGE } } ] }
columns: { query: "SELECT 1 AS v, 2 AS w", metrics: [ { v: { usage: GAUGE } } ] }
text: { query: "SELECT 'many' AS v", metrics: [ { v: { usage: GAUGE } } ] }
version: { query: "SELECT 1 AS v", runonserver: "new", metrics: [ { v: { usage: GAUGE } } ] }
usage: { query: "SELECT 1 AS v", metrics: [ { v: { usage: SOMETHING } } ] }
good: { query: "SELECT 1 AS v", metrics: [ { v: { usage: GAUGE } } ] }
`).collect(),
    );
    expect(series.get("cnpg_good_v")).toBe(1);
    expect(series.get("cnpg_last_error")).toBe(1);
    for (const name of ["fails", "columns", "text", "version", "usage"]) {
      expect(series.get(`cnpg_errors_total{errorUserQueries="${name}"}`)).toBe(1);
    }
    expect(warnings).toHaveLength(5);
  });

  it("replace default ones of the same name", async () => {
    const collector = collectorOf(primary, {
      querySources: () => [
        { name: "defaults", yaml: defaultMonitoringQueries },
        { name: "user", yaml: 'backends: { query: "SELECT 7 AS own", metrics: [ { own: { usage: GAUGE } } ] }' },
      ],
    });
    const text = await collector.collect();
    expect(parse(text).get("cnpg_backends_own")).toBe(7);
    expect(text).not.toContain("cnpg_backends_total");
  });
});
