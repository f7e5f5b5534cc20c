import { KubeError } from "../ports/kube-api.ts";
import type { Logger, LogLevel } from "../ports/logger.ts";
import { type LogDestination, openLogDestination } from "./log-destination.ts";
import { formatLogValue } from "./log-format.ts";
import { LogSampler } from "./log-sampling.ts";
import { scopedLogFields } from "./log-scope.ts";
import { wallClockNanos } from "./wall-clock-nanos.ts";

export interface LoggerOptions {
  /** Least severe level that is written. */
  level: LogLevel;
  /** Key of the level. @default "level" */
  fieldLevel?: string;
  /** Key of the time. @default "ts" */
  fieldTimestamp?: string;
  /** A file to append to, or where lines go. @default stderr */
  destination?: string | LogDestination;
  /** Value of `logging_pod` in each record. */
  pod?: string;
  /** Time of a record as RFC 3339 text. @default the wall clock with nanoseconds */
  timestamp?: () => string;
  /** Clock that a flood of equal records is measured by, in milliseconds. @default the process's */
  now?: () => number;
}

const severity: Record<LogLevel, number> = { error: 0, warning: 1, info: 2, debug: 3, trace: 4 };

/**
 * A logger that writes one JSON object a line, with CloudNativePG's keys. A flood of equal records is thinned out unless the level
 * is `debug` or `trace`; what other programs say (`pipe`) is the user's, and every line of it is written.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { destination } = options;
  return new JsonLogger(
    {
      threshold: severity[options.level],
      levelKey: options.fieldLevel || "level",
      timeKey: options.fieldTimestamp || "ts",
      pod: options.pod || undefined,
      destination: typeof destination === "object" ? destination : openLogDestination(destination),
      timestamp: options.timestamp ?? wallClockNanos,
      sampler: severity[options.level] >= severity.debug ? undefined : new LogSampler(),
      now: options.now ?? (() => performance.now()),
    },
    {},
  );
}

interface CompiledOptions {
  threshold: number;
  levelKey: string;
  timeKey: string;
  pod: string | undefined;
  destination: LogDestination;
  timestamp: () => string;
  sampler: LogSampler | undefined;
  now: () => number;
}

class JsonLogger implements Logger {
  readonly #options: CompiledOptions;
  readonly #fields: Record<string, unknown>;

  constructor(options: CompiledOptions, fields: Record<string, unknown>) {
    this.#options = options;
    this.#fields = fields;
  }

  error(message: string, fields?: Record<string, unknown>): void {
    this.#log("error", message, fields);
  }

  warning(message: string, fields?: Record<string, unknown>): void {
    this.#log("warning", message, fields);
  }

  info(message: string, fields?: Record<string, unknown>): void {
    this.#log("info", message, fields);
  }

  debug(message: string, fields?: Record<string, unknown>): void {
    this.#log("debug", message, fields);
  }

  trace(message: string, fields?: Record<string, unknown>): void {
    this.#log("trace", message, fields);
  }

  child(fields: Record<string, unknown>): Logger {
    return new JsonLogger(this.#options, { ...this.#fields, ...fields });
  }

  #log(level: LogLevel, message: string, extra: Record<string, unknown> = {}): void {
    const { threshold, levelKey, timeKey, pod, destination, timestamp, sampler, now } = this.#options;
    if (severity[level] > threshold) return;
    // What another program says is no part of the work that started it, and not ours to thin out.
    const isForeign = "pipe" in extra;
    if (!isForeign && sampler?.admits(level, message, now()) === false) return;
    const { logger, ...fields } = { ...(isForeign ? {} : scopedLogFields()), ...this.#fields, ...extra };
    const record: Record<string, unknown> = { [levelKey]: level, [timeKey]: timestamp() };
    if (logger !== undefined) record["logger"] = logger;
    record["msg"] = message;
    if (pod) record["logging_pod"] = pod;
    // Upstream adds the place of the call only when debugging, where its cost does not matter.
    if (threshold >= severity.debug) record["caller"] = callSite();
    for (const [key, value] of Object.entries(fields)) record[key] = formatLogValue(key, value);
    if (level === "error" && isUnexpected(extra["error"])) record["stacktrace"] = extra["error"].stack;
    destination.write(JSON.stringify(record));
  }
}

/** Failed requests say everything in their text; a stack is for what nobody foresaw. */
function isUnexpected(error: unknown): error is Error {
  return error instanceof Error && !(error instanceof KubeError);
}

function callSite(): string | undefined {
  // Frames: Error, callSite, #log, the level's method, the caller.
  return new Error().stack?.split("\n")[4]?.replace(/^\s*at\s+/, "");
}
