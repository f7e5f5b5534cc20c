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
  /** Client TLS for connections over the network. */
  tls?: { ca: string; cert?: string; key?: string };
  /** A physical-replication session (IDENTIFY_SYSTEM and the like). */
  replication?: boolean;
}

/** Opens sessions. Connect errors carry the server's SQLSTATE in `code` when there is one. */
export interface SqlConnector {
  connect(target: SqlTarget, signal?: AbortSignal): Promise<SqlSession>;
}
