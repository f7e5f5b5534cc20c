import type { Cluster } from "../../api/generated/cluster.ts";
import { parseGoDuration } from "../../postgres/go-duration.ts";
import type { QuerySource } from "./facts.ts";
import { parseQueries, type QueryDefinition } from "./query-definition.ts";
import type { SampleSet } from "./sample-set.ts";

/** How long results of monitoring queries are used again when the Cluster does not say, in milliseconds. */
export const defaultQueriesTtlMs = 30_000;

/** Time to live of query results; unreadable text counts as absent. */
export function queriesTtlMs(cluster: Cluster | undefined): number {
  const text = cluster?.spec.monitoring?.metricsQueriesTTL;
  return text === undefined ? defaultQueriesTtlMs : (parseGoDuration(text) ?? defaultQueriesTtlMs);
}

/** The query that belongs to the exporter itself. */
const builtInQueries = `collector:
  target_databases: ["*"]
  query: |
    SELECT pg_catalog.current_database() AS datname, relpages AS lo_pages
      FROM pg_catalog.pg_class WHERE oid = 'pg_catalog.pg_largeobject'::regclass
  metrics:
    - datname: { usage: LABEL, description: "Name of the database" }
    - lo_pages: { usage: GAUGE, description: "Estimated pages of the table of large objects" }
`;

/** The queries in force: later sources replace earlier ones of the same name. */
export class QueryCatalog {
  #fingerprint = "";
  #queries: QueryDefinition[] = [];

  /** Reads the sources anew when one changed; tells whether it did. `onReplaced` hears of each query that gave way to a later one. */
  update(
    sources: readonly QuerySource[],
    onError: (source: string, query: string, reason: string) => void,
    onReplaced: (query: string) => void = () => undefined,
  ): boolean {
    const fingerprint = JSON.stringify(sources.map(({ name, yaml }) => [name, yaml]));
    if (fingerprint === this.#fingerprint) return false;
    this.#fingerprint = fingerprint;
    const byKey = new Map<string, QueryDefinition>();
    for (const { name, yaml } of [{ name: "built-in", yaml: builtInQueries }, ...sources]) {
      const { queries, errors } = parseQueries(yaml);
      for (const query of queries) {
        if (byKey.has(query.key)) onReplaced(query.key);
        byKey.set(query.key, query);
      }
      for (const { key, reason } of errors) onError(name, key, reason);
    }
    this.#queries = [...byKey.values()];
    return true;
  }

  get queries(): readonly QueryDefinition[] {
    return this.#queries;
  }
}

/** Samples of the last run of the queries. */
export interface CachedRun {
  samples: SampleSet;
  /** Wall clock, milliseconds since the epoch. */
  at: number;
  /** Whether a query failed in it. */
  failed: boolean;
}

/** Whether a former run may be used again. */
export function isFresh(cached: CachedRun | undefined, now: number, ttlMs: number): cached is CachedRun {
  // A clock that was set back must not keep old values alive.
  return cached !== undefined && now >= cached.at && now - cached.at <= ttlMs && ttlMs > 0;
}
