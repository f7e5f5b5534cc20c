import type { Logger, LogLevel } from "../../src/ports/logger.ts";

export interface LogRecord {
  level: LogLevel;
  message: string;
  fields: Record<string, unknown>;
}

/** A logger that remembers. */
export interface LogCapture {
  logger: Logger;
  records: LogRecord[];
  /** Messages of a level, in order. */
  messages(level?: LogLevel): string[];
}

/** Creates a logger whose records a test can look at. */
export function captureLogs(): LogCapture {
  const records: LogRecord[] = [];
  const create = (inherited: Record<string, unknown>): Logger => {
    const at = (level: LogLevel) => (message: string, fields?: Record<string, unknown>) =>
      void records.push({ level, message, fields: { ...inherited, ...fields } });
    return {
      error: at("error"),
      warning: at("warning"),
      info: at("info"),
      debug: at("debug"),
      trace: at("trace"),
      child: (fields) => create({ ...inherited, ...fields }),
    };
  };
  return {
    logger: create({}),
    records,
    messages: (level) => records.filter((record) => !level || record.level === level).map((record) => record.message),
  };
}
