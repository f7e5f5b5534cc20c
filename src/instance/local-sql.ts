import { roles } from "../api/constants.ts";
import type { SqlRow, SqlSession } from "../ports/sql-session.ts";
import type { InstanceContext } from "./instance-context.ts";

/** SQLSTATE classes that the connection survives: the statement was wrong or refused, not the session. */
function survives(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith("57P") && !code.startsWith("08");
}

function isEndOfSession(error: unknown): boolean {
  const code = String((error as { code?: unknown }).code ?? "");
  return code === "CONNECTION_LOST" || code.startsWith("57P");
}

/** Closes every session of ours; a smart stop waits for all that are open, whoever they belong to. */
export async function closeLocalSessions(context: InstanceContext): Promise<void> {
  await Promise.all([...context.localSessions].map((sql) => sql.close()));
}

/** One superuser session over the local socket, opened when needed and opened anew when it broke. */
export class LocalSql {
  readonly #context: InstanceContext;
  readonly #database: string;
  readonly #queryTimeoutMs: number | undefined;
  #session: Promise<SqlSession> | undefined;

  constructor(context: InstanceContext, options: { database?: string; queryTimeoutMs?: number } = {}) {
    this.#context = context;
    context.localSessions.add(this);
    this.#database = options.database ?? "postgres";
    this.#queryTimeoutMs = options.queryTimeoutMs;
  }

  #open(): Promise<SqlSession> {
    const { settings, paths, sql } = this.#context;
    this.#session ??= sql.connect({
      host: paths.socketDir,
      port: settings.postgresPort,
      user: roles.superuser,
      database: this.#database,
      applicationName: "cnpg-instance-manager",
      connectTimeoutMs: 5_000,
      ...(this.#queryTimeoutMs === undefined ? {} : { queryTimeoutMs: this.#queryTimeoutMs }),
    });
    return this.#session;
  }

  async query<R extends SqlRow = SqlRow>(text: string, values?: readonly unknown[]): Promise<R[]> {
    const reused = this.#session !== undefined;
    const opening = this.#open();
    try {
      const session = await opening;
      return await session.query<R>(text, values);
    } catch (error) {
      if (survives(error)) throw error;
      if (this.#session === opening) this.#session = undefined;
      opening.then((session) => session.close()).catch(() => undefined);
      // A session from before a restart of PostgreSQL tells of its end only when it is used.
      if (reused && isEndOfSession(error)) return this.query<R>(text, values);
      throw error;
    }
  }

  /** The first row; throws when there is none. */
  async one<R extends SqlRow = SqlRow>(text: string, values?: readonly unknown[]): Promise<R> {
    const [row] = await this.query<R>(text, values);
    if (!row) throw new Error(`no row for: ${text}`);
    return row;
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session) await session.then((open) => open.close()).catch(() => undefined);
  }
}

/** Runs statements in one session of their own. */
export async function withSession<T>(
  context: InstanceContext,
  database: string,
  work: (session: SqlSession) => Promise<T>,
): Promise<T> {
  const session = await context.sql.connect({
    host: context.paths.socketDir,
    port: context.settings.postgresPort,
    user: roles.superuser,
    database,
    applicationName: "cnpg-instance-manager",
    connectTimeoutMs: 5_000,
  });
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}
