import { roles } from "../api/constants.ts";
import type { SqlRow, SqlSession, SqlTarget } from "../ports/sql-session.ts";
import type { InstanceContext } from "./instance-context.ts";

/** What a statement of a pass may take: one that hangs on a user's lock must not keep the whole instance from acting. */
export const passLimits = {
  queryTimeoutMs: 30_000,
  statementTimeoutMs: 30_000,
  parameters: { lock_timeout: "5000" },
} as const;

/** How long the server has to tell that a statement was cut at its limit, in milliseconds. */
const answerMs = 5_000;

/** SQLSTATE classes that the connection survives: the statement was wrong or refused, not the session. */
function survives(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith("57P") && !code.startsWith("08");
}

function isEndOfSession(error: unknown): boolean {
  const code = String((error as { code?: unknown }).code ?? "");
  return code === "CONNECTION_LOST" || code.startsWith("57P");
}

/** Waits for work, but not beyond the signal. */
function until<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Closes every session of ours; a smart stop waits for all that are open, whoever they belong to. */
export async function closeLocalSessions(context: InstanceContext): Promise<void> {
  await Promise.all([...context.localSessions].map((sql) => sql.close()));
}

type SessionLimits = Pick<SqlTarget, "queryTimeoutMs" | "statementTimeoutMs" | "parameters">;

/** One superuser session over the local socket, opened when needed and opened anew when it broke. */
export class LocalSql {
  readonly #context: InstanceContext;
  readonly #database: string;
  readonly #limits: SessionLimits;
  #signal: AbortSignal | undefined;
  #session: Promise<SqlSession> | undefined;

  constructor(context: InstanceContext, options: { database?: string } & SessionLimits = {}) {
    this.#context = context;
    context.localSessions.add(this);
    this.#database = options.database ?? "postgres";
    const { database: _, ...limits } = options;
    this.#limits = limits;
  }

  /** From now on no statement is waited for beyond this signal. */
  follow(signal: AbortSignal): void {
    this.#signal = signal;
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
      ...this.#limits,
    });
    return this.#session;
  }

  async query<R extends SqlRow = SqlRow>(text: string, values?: readonly unknown[]): Promise<R[]> {
    const signal = this.#signal;
    signal?.throwIfAborted();
    const reused = this.#session !== undefined;
    const opening = this.#open();
    try {
      const session = await until(opening, signal);
      return await until(session.query<R>(text, values), signal);
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

/**
 * Runs statements in one session of their own; without `unlimited` they keep to what a pass may take, or each to `limitMs`
 * where it is no pass that waits.
 */
export async function withSession<T>(
  context: InstanceContext,
  database: string,
  work: (session: SqlSession) => Promise<T>,
  options: {
    signal?: AbortSignal;
    unlimited?: boolean;
    limitMs?: number | undefined;
    parameters?: Readonly<Record<string, string>>;
  } = {},
): Promise<T> {
  const { limitMs } = options;
  const own = limitMs === undefined ? {} : { statementTimeoutMs: limitMs, queryTimeoutMs: limitMs + answerMs };
  const limits = options.unlimited ? {} : { ...passLimits, ...own };
  const session = await context.sql.connect(
    {
      host: context.paths.socketDir,
      port: context.settings.postgresPort,
      user: roles.superuser,
      database,
      applicationName: "cnpg-instance-manager",
      connectTimeoutMs: 5_000,
      ...limits,
      parameters: { ...(options.unlimited ? {} : passLimits.parameters), ...options.parameters },
    },
    options.signal,
  );
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}
