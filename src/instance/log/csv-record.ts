/** One record of PostgreSQL's CSV log, empty values left out. */
export type LogRecord = Record<string, string>;

const columns = [
  "log_time",
  "user_name",
  "database_name",
  "process_id",
  "connection_from",
  "session_id",
  "session_line_num",
  "command_tag",
  "session_start_time",
  "virtual_transaction_id",
  "transaction_id",
  "error_severity",
  "sql_state_code",
  "message",
  "detail",
  "hint",
  "internal_query",
  "internal_query_pos",
  "context",
  "query",
  "query_pos",
  "location",
  "application_name",
  "backend_type",
  "leader_pid",
  "query_id",
] as const;

/** Number of columns by release: up to 12, 13, from 14 on. */
const widths: ReadonlySet<number> = new Set([23, 24, 26]);

/** Names the values of a record; `undefined` when their number fits no release. */
export function nameLogColumns(values: readonly string[]): LogRecord | undefined {
  if (!widths.has(values.length)) return undefined;
  const record: LogRecord = {};
  for (const [index, value] of values.entries()) {
    const column = columns[index];
    if (value !== "" && column !== undefined) record[column] = value;
  }
  return record;
}

/** Splits one CSV record; `undefined` when its quoting is broken. */
export function splitCsv(text: string): string[] | undefined {
  const values: string[] = [];
  let index = 0;
  for (;;) {
    if (text.charAt(index) === '"') {
      const end = closingQuote(text, index + 1);
      if (end === -1) return undefined;
      values.push(text.slice(index + 1, end).replaceAll('""', '"'));
      index = end + 1;
      if (index === text.length) return values;
      if (text.charAt(index) !== ",") return undefined;
    } else {
      const comma = text.indexOf(",", index);
      const value = text.slice(index, comma === -1 ? text.length : comma);
      if (value.includes('"')) return undefined;
      values.push(value);
      if (comma === -1) return values;
      index = comma;
    }
    index += 1;
  }
}

function closingQuote(text: string, start: number): number {
  let index = text.indexOf('"', start);
  while (index !== -1 && text.charAt(index + 1) === '"') index = text.indexOf('"', index + 2);
  return index;
}
