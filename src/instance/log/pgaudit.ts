import { type LogRecord, splitCsv } from "./csv-record.ts";

const auditColumns = [
  "audit_type",
  "statement_id",
  "substatement_id",
  "class",
  "command",
  "object_type",
  "object_name",
  "statement",
  "parameter",
  "rows",
] as const;

const prefix = "AUDIT:";

/** A log record whose message pgaudit wrote. */
export interface AuditRecord {
  /** The record without its message, and the audit entry beside it. */
  record: LogRecord & { audit?: never };
  audit: Record<string, string>;
}

/** Takes a pgaudit entry out of a record; `undefined` when the message is none, so that it stays a plain record. */
export function parseAuditRecord(record: LogRecord): AuditRecord | undefined {
  const message = record["message"];
  if (!message?.startsWith(prefix)) return undefined;
  const values = splitCsv(message.slice(prefix.length).trim());
  // The row count is there only when pgaudit.log_rows is on.
  if (!values || (values.length !== 9 && values.length !== 10)) return undefined;
  const audit: Record<string, string> = {};
  for (const [index, value] of values.entries()) {
    const column = auditColumns[index];
    if (value !== "" && column !== undefined) audit[column] = value;
  }
  const { message: _message, ...rest } = record;
  return { record: rest, audit };
}
