interface ServerError {
  code?: unknown;
  cause?: { message?: unknown; severity?: unknown };
}

/** What PostgreSQL itself said, if it was PostgreSQL that refused. */
export function serverMessage(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as ServerError;
  const isState = typeof code === "string" && /^[0-9A-Z]{5}$/.test(code);
  return isState && typeof cause?.message === "string" ? cause.message : undefined;
}

/** An error as users read it in the status of an object: PostgreSQL's own words with their SQLSTATE, or ours. */
export function errorText(error: unknown): string {
  const said = serverMessage(error);
  if (said === undefined) return error instanceof Error ? error.message : String(error);
  const { code, cause } = error as ServerError;
  return `${typeof cause?.severity === "string" ? cause.severity : "ERROR"}: ${said} (SQLSTATE ${code})`;
}
