import type { SqlRawSession } from "../../ports/sql-session.ts";
import { serverVersionOf } from "../../postgres/semver-range.ts";
import { parsePostgresBoolean } from "../../postgres/values.ts";
import { compileGlob, isGlob } from "./database-glob.ts";
import { forVersion, type QueryDefinition } from "./query-definition.ts";
import { addResult } from "./result-samples.ts";
import type { SampleSet } from "./sample-set.ts";

export interface QueryRun {
  queries: readonly QueryDefinition[];
  /** `server_version_num`. */
  serverVersion: number;
  isPrimary: boolean;
  /** Where queries without `target_databases` run. */
  defaultDatabase: string;
  /** A session that is there already, in that database; stays open. */
  session: SqlRawSession;
  sessionDatabase: string;
  connect(database: string): Promise<SqlRawSession>;
  samples: SampleSet;
  /** A query failed or gave something that could not be used. */
  onError(query: QueryDefinition, database: string, error: unknown): void;
}

/** Runs monitoring queries, one database after the other and each query in a read-only transaction of its own. */
export async function runQueries(run: QueryRun): Promise<void> {
  const version = serverVersionOf(run.serverVersion);
  const wanted = run.queries
    .filter((query) => (!query.primaryOnly || run.isPrimary) && (query.runsOn?.(version) ?? true))
    .map((query) => forVersion(query, version));
  const byDatabase = await groupByDatabase(run, wanted);
  for (const [database, queries] of byDatabase) {
    if (database === run.sessionDatabase) await runInSession(run, run.session, database, queries);
    else await runInDatabase(run, database, queries);
  }
}

async function groupByDatabase(
  run: QueryRun,
  queries: readonly QueryDefinition[],
): Promise<Map<string, QueryDefinition[]>> {
  const groups = new Map<string, QueryDefinition[]>([[run.sessionDatabase, []]]);
  const add = (database: string, query: QueryDefinition) => {
    const group = groups.get(database);
    if (group) group.push(query);
    else groups.set(database, [query]);
  };
  const needsList = queries.some((query) => query.targetDatabases.some(isGlob));
  const existing = needsList ? await listDatabases(run.session) : [];
  for (const query of queries) {
    for (const database of targetsOf(run, query, existing)) add(database, query);
  }
  return groups;
}

function targetsOf(run: QueryRun, query: QueryDefinition, existing: readonly string[]): Set<string> {
  if (query.targetDatabases.length === 0) return new Set([run.defaultDatabase]);
  const targets = new Set<string>();
  for (const pattern of query.targetDatabases) {
    if (!isGlob(pattern)) {
      targets.add(pattern);
      continue;
    }
    const glob = compileGlob(pattern);
    if (!glob) run.onError(query, pattern, new Error(`target_databases has the malformed pattern "${pattern}"`));
    else for (const name of existing) if (glob.test(name)) targets.add(name);
  }
  return targets;
}

async function listDatabases(session: SqlRawSession): Promise<string[]> {
  const { rows } = await session.queryRaw(
    `SELECT datname FROM pg_catalog.pg_database
      WHERE datallowconn AND NOT datistemplate AND pg_catalog.has_database_privilege(datname, 'CONNECT')
      ORDER BY datname`,
  );
  return rows.map(([name]) => name ?? "");
}

async function runInDatabase(run: QueryRun, database: string, queries: readonly QueryDefinition[]): Promise<void> {
  let session: SqlRawSession;
  try {
    session = await run.connect(database);
  } catch (error) {
    for (const query of queries) run.onError(query, database, error);
    return;
  }
  try {
    await runInSession(run, session, database, queries);
  } finally {
    await session.close();
  }
}

async function runInSession(
  run: QueryRun,
  session: SqlRawSession,
  database: string,
  queries: readonly QueryDefinition[],
): Promise<void> {
  for (const query of queries) {
    try {
      await runQuery(run, session, database, query);
    } catch (error) {
      run.onError(query, database, error);
    }
  }
}

async function runQuery(
  run: QueryRun,
  session: SqlRawSession,
  database: string,
  query: QueryDefinition,
): Promise<void> {
  await session.queryRaw("BEGIN READ ONLY");
  try {
    if (query.predicateQuery && !(await isTrue(session, query.predicateQuery))) return;
    // With (no) values only one statement is taken, so that no query can leave its read-only transaction.
    const result = await session.queryRaw(query.query, []);
    addResult(query, result, run.samples, ({ column, metric, reason }) => {
      const subject = metric ?? (column === undefined ? "" : `column ${column}`);
      run.onError(query, database, new Error(subject ? `${subject}: ${reason}` : reason));
    });
  } finally {
    // Also takes back what the query may have set.
    await session.queryRaw("ROLLBACK");
  }
}

/** The first column of the first row decides, whatever else there is; no row, null and false say no. */
async function isTrue(session: SqlRawSession, text: string): Promise<boolean> {
  const { columns, rows } = await session.queryRaw(text, []);
  const [answer = null] = rows[0] ?? [];
  if (answer === null) return false;
  const value = parsePostgresBoolean(answer);
  if (value === undefined)
    throw new Error(`predicate_query gives "${answer}" in "${columns[0]?.name ?? ""}", not true or false`);
  return value;
}
