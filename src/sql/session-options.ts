import type { SqlTarget } from "../ports/sql-session.ts";

/** Settings every session of ours runs with (reference: instance manager §3.7); `client_encoding` is UTF8 by the protocol library. */
const sessionParameters: Readonly<Record<string, string>> = {
  datestyle: "ISO",
  search_path: "pg_catalog, public, pg_temp",
  synchronous_commit: "local",
};

/** Value of the startup packet's `options`; `undefined` when there is none. */
export function buildSessionOptions(target: SqlTarget): string | undefined {
  const parameters: Record<string, string> = {
    // A physical-replication session has no database whose defaults could disturb it.
    ...(target.replication ? {} : sessionParameters),
    ...(target.statementTimeoutMs === undefined ? {} : { statement_timeout: String(target.statementTimeoutMs) }),
    ...target.parameters,
  };
  const words = Object.entries(parameters).map(([name, value]) => `-c ${name}=${escapeWord(value)}`);
  return words.length > 0 ? words.join(" ") : undefined;
}

/** The server splits the options at spaces; a backslash keeps one. */
function escapeWord(value: string): string {
  return value.replace(/[\\\s]/g, (char) => `\\${char}`);
}
