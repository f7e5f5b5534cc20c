import { applicationDatabase } from "../../api/cluster-facts.ts";
import { roles } from "../../api/constants.ts";
import type { SqlRawSession, SqlTarget } from "../../ports/sql-session.ts";
import { addClusterMetrics, clusterLabel, collectorGauge } from "./cluster-metrics.ts";
import type { CollectorStep, MetricsCollectorOptions } from "./facts.ts";
import { type CachedRun, isFresh, QueryCatalog, queriesTtlMs } from "./query-cache.ts";
import type { QueryDefinition } from "./query-definition.ts";
import { runQueries } from "./query-engine.ts";
import { refusalText } from "./result-samples.ts";
import { addRuntimeMetrics } from "./runtime-metrics.ts";
import { SampleSet } from "./sample-set.ts";
import { serverSteps } from "./server-metrics.ts";

/** Content type of what {@link MetricsCollector.collect} gives. */
export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

/** Longest time that one monitoring statement may take, in milliseconds. */
export const metricsStatementTimeoutMs = 60_000;

export interface MetricsCollector {
  /** Text of all metrics. Never rejects: what fails is counted and left out. Calls during a scrape share its answer. */
  collect(): Promise<string>;
}

/** Where the exporter's sessions go: the socket, as the metrics role. */
export function metricsTarget(socketDir: string, port: number, database: string): SqlTarget {
  return {
    host: socketDir,
    port,
    user: roles.metrics,
    database,
    applicationName: roles.metrics,
    connectTimeoutMs: 5_000,
    statementTimeoutMs: metricsStatementTimeoutMs,
    queryTimeoutMs: metricsStatementTimeoutMs + 5_000,
  };
}

/** The exporter behind port 9187. */
export function createMetricsCollector(options: MetricsCollectorOptions): MetricsCollector {
  const collector = new Collector(options);
  let underway: Promise<string> | undefined;
  return {
    collect() {
      underway ??= collector.collect().finally(() => {
        underway = undefined;
      });
      return underway;
    },
  };
}

/** A session, where it is possible in the database where queries run that name none. */
interface OpenServer {
  session: SqlRawSession;
  database: string;
  /** Where queries run that name none. */
  defaultDatabase: string;
  serverVersion: number;
}

/** SQLSTATE of a database that does not exist. */
const noDatabase = "3D000";
/** SQLSTATEs of a database that lets the exporter's role, everybody or so many not in; the server itself may be well. */
const closedDatabase: readonly string[] = ["42501", "55000", "53300"];

/** Whether a server that is up turned the exporter away, for example because its role is missing; one that starts or stops is not up. */
function isRefusal(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) && code !== "57P03";
}

class Collector {
  readonly #options: MetricsCollectorOptions;
  readonly #catalog = new QueryCatalog();
  readonly #stepErrors = new Map<CollectorStep, number>();
  readonly #queryErrors = new Map<string, number>();
  readonly #durations = new Map<string, number>();
  /** Problems already told, so that each scrape does not repeat them. */
  #told = new Set<string>();
  #collections = 0;
  #cacheHits = 0;
  #cacheMisses = 0;
  #cached: CachedRun | undefined;
  /** Results of the queries that ask to be kept longer, by name and role. */
  readonly #kept = new Map<string, CachedRun>();

  constructor(options: MetricsCollectorOptions) {
    this.#options = options;
  }

  async collect(): Promise<string> {
    const { clock } = this.#options;
    const cluster = this.#options.cluster();
    const instance = this.#options.instance();
    const samples = new SampleSet();
    this.#collections += 1;
    const isRead = this.#catalog.update(
      this.#options.querySources(),
      (...problem) => this.#reportDefinition(...problem),
      (queryName) =>
        this.#tellOnce("Query with the same name already found. Overwriting the existing one.", { queryName }),
    );
    if (isRead) {
      this.#cached = undefined;
      this.#kept.clear();
    }
    let failed = false;
    if (cluster) addClusterMetrics(samples, cluster, instance);
    if (!instance.isFenced && !instance.mightBeUnavailable) {
      const begin = clock.monotonicMs();
      failed = !(await this.#collectFromServer(samples));
      this.#durations.set("Collect.up", (clock.monotonicMs() - begin) / 1000);
    }
    if (!(await this.#addPlugins(samples))) failed = true;
    const runtime = await this.#options.runtime?.();
    if (runtime) addRuntimeMetrics(samples, runtime);
    this.#addOwn(samples, failed);
    return samples.render();
  }

  /** In a set of their own, so that a plugin which fails half-way leaves no half of its metrics. */
  async #addPlugins(samples: SampleSet): Promise<boolean> {
    const { plugins } = this.#options;
    if (!plugins) return true;
    const own = new SampleSet();
    let refused: unknown;
    try {
      await plugins(own);
      samples.merge(own, (name, refusal) => {
        refused = new Error(`${name}: ${refusalText[refusal]}`);
      });
      if (refused === undefined) return true;
    } catch (error) {
      refused = error;
    }
    this.#countStep("Collect.PluginMetrics", refused);
    return false;
  }

  /** Whether every step went well. */
  async #collectFromServer(samples: SampleSet): Promise<boolean> {
    const cluster = this.#options.cluster();
    const up = collectorGauge("up", "1 when PostgreSQL answers");
    const database = (cluster ? applicationDatabase(cluster)?.database : undefined) ?? "postgres";
    let open: OpenServer;
    try {
      open = await this.#open(database);
    } catch (error) {
      samples.add(up, clusterLabel(cluster), Number(isRefusal(error)));
      this.#countStep("Collect.cnpg", error);
      return false;
    }
    samples.add(up, clusterLabel(cluster), 1);
    try {
      const ok = await this.#runSteps(samples, open);
      await this.#addQueries(samples, open);
      return ok;
    } finally {
      await open.session.close();
    }
  }

  /**
   * The application database, or `postgres` while that does not exist yet. One that is closed to the exporter costs only the
   * queries that are meant for it.
   */
  async #open(database: string): Promise<OpenServer> {
    const { connect } = this.#options;
    let [used, defaultDatabase] = [database, database];
    const session = await connect(database).catch((error: { code?: string }) => {
      const { code = "" } = error;
      if (database === "postgres" || (code !== noDatabase && !closedDatabase.includes(code))) throw error;
      used = "postgres";
      if (code === noDatabase) defaultDatabase = used;
      return connect(used);
    });
    try {
      const { rows } = await session.queryRaw("SELECT pg_catalog.current_setting('server_version_num')");
      return { session, database: used, defaultDatabase, serverVersion: Number(rows[0]?.[0]) };
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  async #runSteps(samples: SampleSet, open: { session: SqlRawSession; serverVersion: number }): Promise<boolean> {
    const context = {
      session: open.session,
      serverVersion: open.serverVersion,
      samples,
      cluster: this.#options.cluster(),
      instance: this.#options.instance(),
    };
    let ok = true;
    for (const { step, run } of serverSteps) {
      try {
        await run(context);
      } catch (error) {
        ok = false;
        this.#countStep(step, error);
      }
    }
    return ok;
  }

  async #addQueries(samples: SampleSet, open: OpenServer): Promise<void> {
    const { clock } = this.#options;
    const ttl = queriesTtlMs(this.#options.cluster());
    let run = this.#cached;
    if (isFresh(run, clock.now(), ttl)) this.#cacheHits += 1;
    else {
      this.#cacheMisses += 1;
      const begin = clock.monotonicMs();
      run = await this.#runQueries(open);
      this.#cached = run;
      this.#durations.set("Collect.cnpg", (clock.monotonicMs() - begin) / 1000);
    }
    samples.merge(run.samples, (name, refusal) => this.#countQuery(name, "", new Error(refusalText[refusal])));
    const gauge = (name: string, help: string, value: number) => samples.add({ name, help, type: "gauge" }, {}, value);
    gauge("cnpg_last_error", "1 when a monitoring query failed in the last run", Number(run.failed));
    gauge("cnpg_last_update_timestamp", "When the queries ran, in seconds since the epoch", Math.floor(run.at / 1000));
  }

  /** Runs what has to run, and adds what is kept longer. */
  async #runQueries(open: OpenServer): Promise<CachedRun> {
    const { queries } = this.#catalog;
    const run = await this.#runAll(
      open,
      queries.filter(({ cacheSeconds }) => cacheSeconds === 0),
    );
    const { isPrimary } = this.#options.instance();
    for (const query of queries.filter(({ cacheSeconds }) => cacheSeconds > 0)) {
      const key = `${isPrimary ? "primary" : "standby"} ${query.key}`;
      let kept = this.#kept.get(key);
      if (!isFresh(kept, this.#options.clock.now(), query.cacheSeconds * 1000)) {
        kept = await this.#runAll(open, [query]);
        if (kept.failed) run.failed = true;
        else this.#kept.set(key, kept);
      }
      run.samples.merge(kept.samples, (name, refusal) => this.#countQuery(name, "", new Error(refusalText[refusal])));
    }
    return run;
  }

  async #runAll(open: OpenServer, queries: readonly QueryDefinition[]): Promise<CachedRun> {
    const run: CachedRun = { samples: new SampleSet(), at: this.#options.clock.now(), failed: false };
    const fail = (query: string, database: string, error: unknown) => {
      run.failed = true;
      this.#countQuery(query, database, error);
    };
    try {
      await runQueries({
        queries,
        serverVersion: open.serverVersion,
        isPrimary: this.#options.instance().isPrimary,
        defaultDatabase: open.defaultDatabase,
        session: open.session,
        sessionDatabase: open.database,
        connect: this.#options.connect,
        samples: run.samples,
        onError: (query, database, error) => fail(query.key, database, error),
      });
    } catch (error) {
      fail("", open.database, error);
    }
    return run;
  }

  #addOwn(samples: SampleSet, failed: boolean): void {
    const counter = (name: string, help: string) => ({ name, help, type: "counter" }) as const;
    const gauge = (name: string, help: string) => ({ name, help, type: "gauge" }) as const;
    samples.add(counter("cnpg_collector_collections_total", "Scrapes of this exporter"), {}, this.#collections);
    samples.add(collectorGauge("last_collection_error", "1 when a step of the last scrape failed"), {}, Number(failed));
    for (const [collector, seconds] of this.#durations) {
      samples.add(collectorGauge("collection_duration_seconds", "Duration of a step"), { collector }, seconds);
    }
    for (const [collector, count] of this.#stepErrors) {
      samples.add(counter("cnpg_collector_collection_errors_total", "Failed steps"), { collector }, count);
    }
    for (const [errorUserQueries, count] of this.#queryErrors) {
      samples.add(counter("cnpg_errors_total", "Failed monitoring queries"), { errorUserQueries }, count);
    }
    samples.add(gauge("cnpg_cache_hits", "Scrapes that used former results of the queries"), {}, this.#cacheHits);
    samples.add(gauge("cnpg_cache_miss", "Scrapes that ran the queries"), {}, this.#cacheMisses);
  }

  #countStep(step: CollectorStep, error: unknown): void {
    this.#stepErrors.set(step, (this.#stepErrors.get(step) ?? 0) + 1);
    this.#tellOnce("Cannot collect metrics", { step, error });
  }

  #countQuery(query: string, database: string, error: unknown): void {
    this.#queryErrors.set(query, (this.#queryErrors.get(query) ?? 0) + 1);
    this.#tellOnce("Monitoring query gave an error", { query, database, error });
  }

  #reportDefinition(source: string, query: string, reason: string): void {
    this.#queryErrors.set(query, (this.#queryErrors.get(query) ?? 0) + 1);
    this.#tellOnce("Monitoring query cannot be used", { source, query, reason });
  }

  #tellOnce(message: string, fields: Record<string, unknown>): void {
    const key = `${message} ${Object.values(fields).map(String).join(" ")}`;
    if (this.#told.has(key)) return;
    // A text that differs each time must not fill the memory.
    if (this.#told.size >= 1000) this.#told = new Set();
    this.#told.add(key);
    this.#options.logger.warning(message, fields);
  }
}
