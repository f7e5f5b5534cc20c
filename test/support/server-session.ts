import type { SqlSession } from "../../src/ports/sql-session.ts";
import { createSqlConnector } from "../../src/sql/pg-connector.ts";
import type { PostgresServer } from "./postgres-server.ts";

/** Sessions on a test's servers, over their sockets, under a name by which the test finds them again. */
export function serverSessions(applicationName: string) {
  const connector = createSqlConnector();
  const connectTo =
    (server: PostgresServer, user = "postgres") =>
    (signal?: AbortSignal): Promise<SqlSession> =>
      connector.connect(
        { host: server.socketDir, port: server.port, user, database: "postgres", applicationName },
        signal,
      );

  /** Runs statements in one session; gives the rows of the last. */
  async function runSql(server: PostgresServer, ...texts: string[]): Promise<Record<string, unknown>[]> {
    const session = await connectTo(server)();
    try {
      let rows: Record<string, unknown>[] = [];
      for (const text of texts) rows = await session.query(text);
      return rows;
    } finally {
      await session.close();
    }
  }

  return { connectTo, runSql };
}
