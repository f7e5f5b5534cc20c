import { parse } from "yaml";
import { compileVersionRange, type Version } from "../../postgres/semver-range.ts";

/** What a column of a result becomes. */
export type ColumnUsage = "DISCARD" | "LABEL" | "COUNTER" | "GAUGE" | "MAPPEDMETRIC" | "DURATION" | "HISTOGRAM";

export interface ColumnMapping {
  column: string;
  usage: ColumnUsage;
  description: string;
  /** Last part of the metric's name. */
  name: string;
  /** Numbers that texts stand for; for `MAPPEDMETRIC`. */
  valueOf: ReadonlyMap<string, number>;
  /** Servers whose result has the column; absent means every version. */
  existsOn?: (version: Version) => boolean;
}

/** One user-defined or built-in monitoring query. */
export interface QueryDefinition {
  key: string;
  /** Middle part of the metrics' names. */
  name: string;
  query: string;
  predicateQuery?: string;
  primaryOnly: boolean;
  /** Whether a server version is meant; absent means every version. */
  runsOn?: (version: Version) => boolean;
  /** Database names or globs; empty means the default database. */
  targetDatabases: readonly string[];
  /** How long its results are used again when that is longer than for all queries; 0 = as for all. */
  cacheSeconds: number;
  columns: ReadonlyMap<string, ColumnMapping>;
}

/** What a text of queries gave, and what was wrong in it. */
export interface ParsedQueries {
  queries: QueryDefinition[];
  errors: { key: string; reason: string }[];
}

const usages: ReadonlySet<string> = new Set<ColumnUsage>([
  "DISCARD",
  "LABEL",
  "COUNTER",
  "GAUGE",
  "MAPPEDMETRIC",
  "DURATION",
  "HISTOGRAM",
]);

/** Reads the YAML of monitoring queries. A query that is wrong is left out and named; the others count. */
export function parseQueries(yamlText: string): ParsedQueries {
  let document: unknown;
  try {
    document = parse(yamlText);
  } catch (error) {
    return { queries: [], errors: [{ key: "", reason: `not valid YAML: ${(error as Error).message}` }] };
  }
  if (document === null || document === undefined) return { queries: [], errors: [] };
  if (!isMap(document)) return { queries: [], errors: [{ key: "", reason: "not a map of queries by name" }] };
  const result: ParsedQueries = { queries: [], errors: [] };
  for (const [key, value] of Object.entries(document)) {
    const query = parseQuery(key, value);
    if (typeof query === "string") result.errors.push({ key, reason: query });
    else result.queries.push(query);
  }
  return result;
}

function parseQuery(key: string, value: unknown): QueryDefinition | string {
  if (!isMap(value)) return "not a map";
  const query = value["query"];
  if (typeof query !== "string" || query.trim() === "") return "query is missing";
  const range = value["runonserver"];
  const runsOn = range === undefined || range === "" ? undefined : compileVersionRange(String(range));
  if (range && !runsOn) return `runonserver is not a version range: ${String(range)}`;
  const columns = parseColumns(value["metrics"]);
  if (typeof columns === "string") return columns;
  const predicate = value["predicate_query"];
  return {
    key,
    name: typeof value["name"] === "string" && value["name"] !== "" ? value["name"] : key,
    query,
    ...(typeof predicate === "string" && predicate.trim() !== "" ? { predicateQuery: predicate } : {}),
    primaryOnly: value["primary"] === true || value["master"] === true,
    ...(runsOn ? { runsOn } : {}),
    targetDatabases: asList(value["target_databases"]).map(String),
    cacheSeconds: Math.max(0, Number(value["cache_seconds"] ?? 0) || 0),
    columns,
  };
}

function parseColumns(value: unknown): Map<string, ColumnMapping> | string {
  const columns = new Map<string, ColumnMapping>();
  for (const entry of asList(value)) {
    if (!isMap(entry)) return "metrics is not a list of columns";
    for (const [column, mapping] of Object.entries(entry)) {
      const parsed = parseColumn(column, mapping);
      if (typeof parsed === "string") return parsed;
      columns.set(column, parsed);
    }
  }
  return columns;
}

function parseColumn(column: string, value: unknown): ColumnMapping | string {
  if (!isMap(value)) return `column ${column} has no mapping`;
  const usage = String(value["usage"] ?? "").toUpperCase();
  if (!usages.has(usage)) return `column ${column} has the unknown usage "${String(value["usage"] ?? "")}"`;
  // Text that is no range was never looked at by anybody, so it must not cost the query.
  const existsOn = compileVersionRange(String(value["pg_version"] ?? ""));
  const mapped = isMap(value["metric_mapping"]) ? Object.entries(value["metric_mapping"]) : [];
  return {
    column,
    usage: usage as ColumnUsage,
    description: String(value["description"] ?? ""),
    name: typeof value["name"] === "string" && value["name"] !== "" ? value["name"] : column,
    valueOf: new Map(mapped.map(([text, number]) => [text, Number(number)])),
    ...(existsOn ? { existsOn } : {}),
  };
}

/** The query with the columns that a server of that version gives. */
export function forVersion(query: QueryDefinition, version: Version): QueryDefinition {
  const columns = new Map([...query.columns].filter(([, mapping]) => mapping.existsOn?.(version) ?? true));
  return columns.size === query.columns.size ? query : { ...query, columns };
}

/** Columns that the result has to have: a histogram brings three of its own. */
export function expectedColumns(query: QueryDefinition): Set<string> {
  const names = new Set(query.columns.keys());
  for (const { column, usage } of query.columns.values()) {
    if (usage === "HISTOGRAM") for (const suffix of ["_bucket", "_sum", "_count"]) names.add(`${column}${suffix}`);
  }
  return names;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
