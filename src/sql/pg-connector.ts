import pg from "pg";
import type { SqlConnector, SqlRow, SqlSession, SqlTarget } from "../ports/sql-session.ts";

/** Session settings every connection of ours runs with (reference: instance manager §3.7). */
const sessionOptions = [
  "-c datestyle=ISO",
  "-c search_path=pg_catalog,public,pg_temp",
  "-c synchronous_commit=local",
].join(" ");

function compileConfig(target: SqlTarget): pg.ClientConfig & { replication?: string } {
  return {
    host: target.host,
    port: target.port ?? 5432,
    user: target.user,
    database: target.database,
    application_name: target.applicationName,
    connectionTimeoutMillis: target.connectTimeoutMs ?? 5_000,
    // A replication session knows no such settings before it has a database.
    ...(target.replication ? { replication: "true" } : { options: sessionOptions }),
    ...(target.queryTimeoutMs === undefined ? {} : { query_timeout: target.queryTimeoutMs }),
    ssl: target.tls
      ? {
          ca: target.tls.ca,
          ...(target.tls.cert === undefined ? {} : { cert: target.tls.cert }),
          ...(target.tls.key === undefined ? {} : { key: target.tls.key }),
          // As libpq's verify-ca: the chain counts, the host name does not.
          checkServerIdentity: () => undefined,
        }
      : false,
  };
}

async function connect(target: SqlTarget, signal?: AbortSignal): Promise<SqlSession> {
  signal?.throwIfAborted();
  const client = new pg.Client(compileConfig(target));
  let broken: Error | undefined;
  // Without a listener the end of an idle connection would end the program.
  client.on("error", (error) => {
    broken = error;
  });
  const abort = () => {
    broken ??= signal?.reason instanceof Error ? signal.reason : new Error("aborted");
    // No polite Terminate: the server may be what hangs.
    (client as unknown as { connection?: { stream?: { destroy(): void } } }).connection?.stream?.destroy();
  };
  signal?.addEventListener("abort", abort, { once: true });
  try {
    await client.connect();
  } catch (error) {
    signal?.removeEventListener("abort", abort);
    // A refused or timed-out attempt leaves a half-open client behind.
    client.end().catch(() => undefined);
    throw error;
  }
  return {
    async query<R extends SqlRow = SqlRow>(text: string, values?: readonly unknown[]): Promise<R[]> {
      if (broken) throw broken;
      const result = values === undefined ? await client.query(text) : await client.query(text, [...values]);
      // Several statements in one text give several results; the last one is the answer.
      const last = Array.isArray(result) ? result[result.length - 1] : result;
      return (last?.rows ?? []) as R[];
    },
    async close(): Promise<void> {
      signal?.removeEventListener("abort", abort);
      await client.end().catch(() => undefined);
    },
  };
}

/** Opens PostgreSQL sessions by node-postgres, one connection each. */
export function createSqlConnector(): SqlConnector {
  return { connect };
}
