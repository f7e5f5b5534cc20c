import { describe, expect, it } from "vitest";
import { defaultMonitoringQueries } from "../../../../src/api/default-monitoring.ts";
import type { Cluster } from "../../../../src/api/generated/cluster.ts";
import { addClusterMetrics } from "../../../../src/instance/metrics/cluster-metrics.ts";
import { isFresh, QueryCatalog, queriesTtlMs } from "../../../../src/instance/metrics/query-cache.ts";
import { forVersion, parseQueries } from "../../../../src/instance/metrics/query-definition.ts";
import { addResult } from "../../../../src/instance/metrics/result-samples.ts";
import { SampleSet } from "../../../../src/instance/metrics/sample-set.ts";
import type { Version } from "../../../../src/postgres/semver-range.ts";
import { aCluster } from "../../postgres/a-cluster.ts";

describe("query definitions", () => {
  it("of the defaults are all readable and say what each column is", () => {
    const { queries, errors } = parseQueries(defaultMonitoringQueries);
    expect(errors).toEqual([]);
    expect(queries.map(({ key }) => key)).toEqual([
      "backends",
      "backends_waiting",
      "pg_database",
      "pg_postmaster",
      "pg_replication",
      "pg_replication_slots",
      "pg_stat_archiver",
      "pg_stat_bgwriter",
      "pg_stat_bgwriter_17",
      "pg_stat_checkpointer",
      "pg_stat_database",
      "pg_stat_replication",
      "pg_settings",
      "pg_extensions",
    ]);
    for (const query of queries) {
      for (const column of query.columns.values()) expect(column.description).not.toBe("");
    }
  });

  it.each([
    ["a: 1", "a", "not a map"],
    ["a: { metrics: [] }", "a", "query is missing"],
    ["a: { query: x, runonserver: '~1' }", "a", "runonserver is not a version range: ~1"],
    ["a: { query: x, metrics: [ 1 ] }", "a", "metrics is not a list of columns"],
    ["a: { query: x, metrics: [ { c: 1 } ] }", "a", "column c has no mapping"],
    ["a: { query: x, metrics: [ { c: { usage: NEW } } ] }", "a", 'column c has the unknown usage "NEW"'],
    ["[ 1 ]", "", "not a map of queries by name"],
  ])("%s is refused", (yaml, key, reason) => {
    expect(parseQueries(yaml)).toEqual({ queries: [], errors: [{ key, reason }] });
  });

  it("may be empty, and YAML that cannot be read is told", () => {
    expect(parseQueries("")).toEqual({ queries: [], errors: [] });
    expect(parseQueries("a: [").errors[0]?.reason).toMatch(/^not valid YAML/);
  });
});

describe("results", () => {
  const definition = (yaml: string) => {
    const [query] = parseQueries(yaml).queries;
    if (!query) throw new Error("unreadable query");
    return query;
  };

  it("are matched by column name, whatever their order", () => {
    const query = definition("q: { query: x, metrics: [ { a: { usage: LABEL } }, { v: { usage: GAUGE } } ] }");
    const samples = new SampleSet();
    const columns = [
      { name: "v", typeId: 23 },
      { name: "a", typeId: 25 },
    ];
    addResult(query, { columns, rows: [["1", "x"]] }, samples, () => undefined);
    expect(samples.render()).toContain('cnpg_q_v{a="x"} 1\n');
  });

  it.each([
    [["v"], "the result has 1 columns, the mapping 2"],
    [["v", "b"], "the result has no such column"],
  ])("with columns %j give nothing", (names, reason) => {
    const query = definition("q: { query: x, metrics: [ { a: { usage: LABEL } }, { v: { usage: GAUGE } } ] }");
    const samples = new SampleSet();
    const problems: string[] = [];
    const columns = names.map((name) => ({ name, typeId: 25 }));
    addResult(query, { columns, rows: [names.map(() => "1")] }, samples, (problem) => problems.push(problem.reason));
    expect(problems).toEqual([reason]);
    expect(samples.render()).toBe("");
  });

  it.each([
    ["MAPPEDMETRIC, metric_mapping: { up: 1 }", "down", 1],
    ["MAPPEDMETRIC, metric_mapping: { up: 1 }", null, 0],
    ["DURATION", "-1", 0],
    ["DURATION", "soon", 0],
    ["GAUGE", "soon", 1],
  ])("usage %s skips %j with %i problems", (usage, value, count) => {
    const query = definition(`q: { query: x, metrics: [ { v: { usage: ${usage} } } ] }`);
    const samples = new SampleSet();
    let problems = 0;
    addResult(query, { columns: [{ name: "v", typeId: 25 }], rows: [[value]] }, samples, () => {
      problems += 1;
    });
    expect([samples.render(), problems]).toEqual(["", count]);
  });
});

describe("the catalog", () => {
  const yaml = "q: { query: one, metrics: [ { v: { usage: GAUGE } } ] }";

  it("lets later sources replace earlier ones and is read anew only when they change", () => {
    const catalog = new QueryCatalog();
    const errors: string[] = [];
    const replaced: string[] = [];
    const update = (...yamls: string[]) =>
      catalog.update(
        yamls.map((text, index) => ({ name: `s${index}`, yaml: text })),
        (source, query, reason) => errors.push(`${source} ${query} ${reason}`),
        (query) => replaced.push(query),
      );
    expect(update(yaml, yaml.replace("one", "two"))).toBe(true);
    expect(replaced).toEqual(["q"]);
    expect(catalog.queries.map(({ key, query }) => [key, query.split(" ")[0]])).toEqual([
      ["collector", "SELECT"],
      ["q", "two"],
    ]);
    expect(update(yaml, yaml.replace("one", "two"))).toBe(false);
    expect(update("bad: 1")).toBe(true);
    expect(errors).toEqual(["s0 bad not a map"]);
  });

  it("keeps results for the time the Cluster says", () => {
    const ttl = (metricsQueriesTTL?: string) =>
      queriesTtlMs(aCluster({ monitoring: metricsQueriesTTL === undefined ? {} : { metricsQueriesTTL } }));
    expect([ttl(), ttl("1m"), ttl("0s"), ttl("soon")]).toEqual([30_000, 60_000, 0, 30_000]);
    const run = { samples: new SampleSet(), at: 1000, failed: false };
    expect([isFresh(run, 1500, 500), isFresh(run, 1501, 500), isFresh(run, 999, 500)]).toEqual([true, false, false]);
    expect([isFresh(run, 1000, 0), isFresh(undefined, 1000, 500)]).toEqual([false, false]);
  });
});

describe("metrics of the Cluster object", () => {
  const values = (cluster: Cluster, isFenced = false) => {
    const samples = new SampleSet();
    addClusterMetrics(samples, cluster, { podName: "obs-1", isPrimary: true, isFenced, mightBeUnavailable: false });
    return samples.render().replaceAll(/^#.*\n/gm, "");
  };

  it("tell roles, replicas and backups", () => {
    const cluster = aCluster(
      { minSyncReplicas: 1, maxSyncReplicas: 2, replica: { enabled: true, source: "x" } },
      {
        phase: "Waiting for user action",
        firstRecoverabilityPoint: "2026-11-30T00:00:00Z",
        lastSuccessfulBackup: "2026-11-30T00:00:01Z",
        lastFailedBackup: "not a time",
        topology: { successfullyExtracted: true, nodesUsed: 2 },
      },
    );
    expect(values(cluster, true)).toBe(
      [
        "cnpg_collector_fencing_on 1",
        "cnpg_collector_first_recoverability_point 1.7959968e+09",
        "cnpg_collector_last_available_backup_timestamp 1.795996801e+09",
        "cnpg_collector_last_failed_backup_timestamp 0",
        "cnpg_collector_manual_switchover_required 1",
        "cnpg_collector_nodes_used 2",
        "cnpg_collector_replica_mode 1",
        'cnpg_collector_sync_replicas{value="expected"} 2',
        'cnpg_collector_sync_replicas{value="max"} 2',
        'cnpg_collector_sync_replicas{value="min"} 1',
        "",
      ].join("\n"),
    );
  });

  it("say -1 for unknown nodes, and backups only on the primary", () => {
    const cluster = aCluster({}, { currentPrimary: "obs-2", firstRecoverabilityPoint: "2026-11-30T00:00:00Z" });
    expect(values(cluster)).toContain("cnpg_collector_nodes_used -1\n");
    expect(values(cluster)).toContain("cnpg_collector_first_recoverability_point 0\n");
  });
});

describe("pg_version of a column", () => {
  const yaml = `q:
  query: SELECT 1 AS a, 2 AS b
  metrics:
    - a: { usage: GAUGE, pg_version: "<14.0.0" }
    - b: { usage: GAUGE }
    - c: { usage: GAUGE, pg_version: "no range" }
`;

  it.each<[Version, string[]]>([
    [
      [13, 0, 9],
      ["a", "b", "c"],
    ],
    [
      [15, 0, 0],
      ["b", "c"],
    ],
  ])("on %j", (version, columns) => {
    const { queries, errors } = parseQueries(yaml);
    expect(errors).toEqual([]);
    expect(queries.map((query) => [...forVersion(query, version).columns.keys()])).toEqual([columns]);
  });
});
