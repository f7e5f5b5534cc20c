export type LogLevel = "error" | "warning" | "info" | "debug" | "trace";

/** Structured log: a constant message, variable facts as fields. */
export interface Logger {
  error(message: string, fields?: Record<string, unknown>): void;
  warning(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  debug(message: string, fields?: Record<string, unknown>): void;
  trace(message: string, fields?: Record<string, unknown>): void;
  /** A logger that adds these fields to each record; `logger` in the fields names it. */
  child(fields: Record<string, unknown>): Logger;
}
