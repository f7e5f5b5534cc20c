import { Socket } from "node:net";
import pg from "pg";
import type { SqlRawConnector, SqlRawResult, SqlRawSession, SqlRow, SqlTarget } from "../ports/sql-session.ts";
import { buildSessionOptions } from "./session-options.ts";
import { SqlError, toSqlError } from "./sql-error.ts";
import { parsedTypes, rawTypes } from "./value-types.ts";

/** How long a polite goodbye may take before the socket is torn, in milliseconds. */
const closeLimitMs = 2_000;

/** Opens PostgreSQL sessions by node-postgres, one connection each, no pool. */
export function createSqlConnector(): SqlRawConnector {
  return { connect };
}

async function connect(target: SqlTarget, signal?: AbortSignal): Promise<SqlRawSession> {
  signal?.throwIfAborted();
  const socket = new Socket();
  const client = new pg.Client(compileConfig(target, socket));
  const session = new PgSession(client, socket, target, signal);
  try {
    await client.connect();
    signal?.throwIfAborted();
  } catch (error) {
    session.tear();
    signal?.throwIfAborted();
    const place = target.host.startsWith("/") ? `socket folder ${target.host}` : target.host;
    throw toSqlError(error, `connecting to database "${target.database}" on ${place} as "${target.user}"`);
  }
  return session;
}

function compileConfig(target: SqlTarget, socket: Socket): pg.ClientConfig & { replication?: string } {
  const options = buildSessionOptions(target);
  return {
    host: target.host,
    port: target.port ?? 5432,
    user: target.user,
    database: target.database,
    // Never undefined: the library would look into the environment and the home folder instead.
    password: target.password ?? "",
    application_name: target.applicationName,
    connectionTimeoutMillis: target.connectTimeoutMs ?? 5_000,
    keepAlive: true,
    stream: () => socket,
    types: parsedTypes,
    ...(options === undefined ? {} : { options }),
    ...(target.replication ? { replication: "true" } : {}),
    ssl: target.tls
      ? {
          ca: target.tls.ca,
          ...(target.tls.cert === undefined ? {} : { cert: target.tls.cert }),
          ...(target.tls.key === undefined ? {} : { key: target.tls.key }),
          rejectUnauthorized: true,
          // As libpq's verify-ca: the chain counts, the host name does not.
          checkServerIdentity: () => undefined,
        }
      : false,
  };
}

class PgSession implements SqlRawSession {
  readonly #client: pg.Client;
  readonly #socket: Socket;
  readonly #target: SqlTarget;
  readonly #signal: AbortSignal | undefined;
  readonly #abort: () => void;
  /** Why the session can no longer be used. */
  #broken: unknown;
  #closed = false;

  constructor(client: pg.Client, socket: Socket, target: SqlTarget, signal: AbortSignal | undefined) {
    this.#client = client;
    this.#socket = socket;
    this.#target = target;
    this.#signal = signal;
    this.#abort = () => {
      this.#broken ??= signal?.reason;
      this.tear();
    };
    // Without a listener the end of an idle connection would end the program.
    client.on("error", (error) => {
      this.#broken ??= error;
    });
    signal?.addEventListener("abort", this.#abort, { once: true });
  }

  async query<R extends SqlRow = SqlRow>(text: string, values?: readonly unknown[]): Promise<R[]> {
    const result = await this.#run(() =>
      // Without values the simple protocol is used, the only one that replication sessions know.
      values === undefined ? this.#client.query(text) : this.#client.query(text, [...values]),
    );
    return (lastResult(result)?.rows ?? []) as R[];
  }

  async queryRaw(text: string, values?: readonly unknown[]): Promise<SqlRawResult> {
    const config: pg.QueryArrayConfig & { queryMode?: "extended" } = { text, rowMode: "array", types: rawTypes };
    if (values !== undefined) {
      config.values = [...values];
      config.queryMode = "extended";
    }
    const last = lastResult(await this.#run(() => this.#client.query(config)));
    return {
      columns: (last?.fields ?? []).map((field) => ({ name: field.name, typeId: field.dataTypeID })),
      rows: (last?.rows ?? []) as (string | null)[][],
    };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const late = setTimeout(() => this.#socket.destroy(), closeLimitMs);
    await this.#client.end().catch(() => undefined);
    clearTimeout(late);
    this.tear();
  }

  /** Cuts the connection: what hangs may be the server. */
  tear(): void {
    this.#closed = true;
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#socket.destroy();
  }

  async #run<T>(start: () => Promise<T>): Promise<T> {
    const attempted = `running a statement in database "${this.#target.database}"`;
    if (this.#closed || this.#broken !== undefined) {
      throw this.#failure(this.#broken ?? new SqlError(`${attempted}: the session is closed`), attempted);
    }
    const limit = this.#target.queryTimeoutMs;
    const late =
      limit === undefined
        ? undefined
        : setTimeout(() => {
            this.#broken ??= new SqlError(`${attempted}: no answer within ${limit} ms`, { code: "QUERY_TIMEOUT" });
            this.#socket.destroy();
          }, limit);
    try {
      return await start();
    } catch (error) {
      // Once the session is broken, the first reason tells more than "connection terminated".
      throw this.#failure(this.#broken ?? error, attempted);
    } finally {
      clearTimeout(late);
    }
  }

  /** An abort keeps its own reason, so that callers recognise it. */
  #failure(error: unknown, attempted: string): unknown {
    return this.#signal?.aborted && error === this.#signal.reason ? error : toSqlError(error, attempted);
  }
}

/** Several statements in one text give several results; the last one is the answer. */
function lastResult<T>(result: T | T[]): T | undefined {
  return Array.isArray(result) ? result.at(-1) : result;
}
