/** One result row as text or parsed scalar, keyed by column. */
export type SqlRow = Record<string, unknown>;

/** One dedicated PostgreSQL session (no pool behind it). */
export interface SqlSession {
  query<R extends SqlRow = SqlRow>(text: string, values?: readonly unknown[]): Promise<R[]>;
  close(): Promise<void>;
}

export interface SqlTarget {
  /** Folder of the unix socket, or a host name. */
  host: string;
  port?: number;
  user: string;
  database: string;
  applicationName: string;
  connectTimeoutMs?: number;
  /** Longest wait for one answer; none when absent. */
  queryTimeoutMs?: number;
  /** PostgreSQL's own limit for one statement; none when absent. */
  statementTimeoutMs?: number;
  /** Settings of the session, beside or instead of the ones every session of ours has. */
  parameters?: Readonly<Record<string, string>>;
  /** Only for servers that ask for one; never logged. */
  password?: string;
  /** Client TLS for connections over the network. */
  tls?: { ca: string; cert?: string; key?: string };
  /** A physical-replication session (IDENTIFY_SYSTEM and the like). */
  replication?: boolean;
}

/** Opens sessions. Connect errors carry the server's SQLSTATE in `code` when there is one. */
export interface SqlConnector {
  connect(target: SqlTarget, signal?: AbortSignal): Promise<SqlSession>;
}

/** A result as PostgreSQL sent it: columns in order, names possibly repeated, every value as text. */
export interface SqlRawResult {
  /** `typeId` is the type's oid. */
  columns: readonly { name: string; typeId: number }[];
  rows: readonly (readonly (string | null)[])[];
}

/** A session whose results are wanted untouched, as the metrics exporter does. */
export interface SqlRawSession extends SqlSession {
  /** With values, even none, the server takes one statement only. */
  queryRaw(text: string, values?: readonly unknown[]): Promise<SqlRawResult>;
}

/** Opens sessions that also give raw results. */
export interface SqlRawConnector extends SqlConnector {
  connect(target: SqlTarget, signal?: AbortSignal): Promise<SqlRawSession>;
}
