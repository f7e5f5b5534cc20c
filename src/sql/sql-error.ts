/** A failed connection attempt or statement. */
export class SqlError extends Error {
  override readonly name = "SqlError";
  /** SQLSTATE of the server, or the system's code (`ECONNREFUSED`), or one of ours (`QUERY_TIMEOUT`, `CONNECTION_LOST`). */
  readonly code: string | undefined;
  readonly detail: string | undefined;
  readonly hint: string | undefined;

  constructor(message: string, options: { code?: string; detail?: string; hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    this.detail = options.detail;
    this.hint = options.hint;
  }
}

/** Makes a {@link SqlError} of whatever was thrown; `attempted` says what was tried, on what. Never throws. */
export function toSqlError(error: unknown, attempted: string): SqlError {
  if (error instanceof SqlError) return error;
  const first = error instanceof AggregateError ? error.errors[0] : error;
  const { code, detail, hint } = (typeof first === "object" && first !== null ? first : {}) as Record<string, unknown>;
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
  const message = first instanceof Error ? first.message : String(first);
  const fields: { code?: string; detail?: string; hint?: string; cause: unknown } = { cause: error };
  const [codeText, detailText, hintText] = [lostConnection(text(code), message), text(detail), text(hint)];
  if (codeText !== undefined) fields.code = codeText;
  if (detailText !== undefined) fields.detail = detailText;
  if (hintText !== undefined) fields.hint = hintText;
  return new SqlError(`${attempted}: ${message}`, fields);
}

/** One code for every way in which a connection can break, so that no system code is taken for a SQLSTATE. */
function lostConnection(code: string | undefined, message: string): string | undefined {
  if (code === "EPIPE" || code === "ECONNRESET") return "CONNECTION_LOST";
  if (code !== undefined) return code;
  if (message.startsWith("Connection terminated")) return "CONNECTION_LOST";
  return message === "timeout expired" ? "ETIMEDOUT" : undefined;
}
