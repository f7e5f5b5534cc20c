import type { Logger, LogLevel } from "../ports/logger.ts";
import { createLogger } from "../runtime/logger.ts";
import { logProcessWarnings } from "../runtime/process-warnings.ts";
import type { WriteLine } from "./log/child-output.ts";
import { createLineWriter } from "./log/line-writer.ts";
import type { RecordEncoderOptions } from "./log/record-encoder.ts";

/** The flags that every command has. */
export interface LogFlags {
  logLevel?: string;
  logDestination?: string;
  logFieldLevel?: string;
  logFieldTimestamp?: string;
}

/** Where a command's own records and those of other programs go. */
export interface LogOutput {
  logger: Logger;
  /** Writes finished lines of the log pipes, beside the logger's own. */
  writeLine: WriteLine;
  format: RecordEncoderOptions;
  /** Writes what waits, synchronously. */
  flush(): void;
}

const levels: readonly LogLevel[] = ["error", "warning", "info", "debug", "trace"];

/** Sets up the log of a command. An unknown level is told and becomes `info`. */
export function createLogOutput(flags: LogFlags, pod: string | undefined): LogOutput {
  const level = levels.find((candidate) => candidate === (flags.logLevel ?? "info"));
  const stderr = createLineWriter(2);
  const stdout = createLineWriter(1);
  const logger = createLogger({
    level: level ?? "info",
    ...(flags.logFieldLevel ? { fieldLevel: flags.logFieldLevel } : {}),
    ...(flags.logFieldTimestamp ? { fieldTimestamp: flags.logFieldTimestamp } : {}),
    destination: flags.logDestination || stderr,
    ...(pod ? { pod } : {}),
  });
  logProcessWarnings(logger);
  if (!level) logger.warning("Unknown log level, using info", { logLevel: flags.logLevel });
  return {
    logger,
    writeLine: (line, stream) => (stream === "stdout" ? stdout : stderr).write(line),
    format: {
      ...(pod ? { podName: pod } : {}),
      ...(flags.logFieldLevel ? { levelKey: flags.logFieldLevel } : {}),
      ...(flags.logFieldTimestamp ? { timestampKey: flags.logFieldTimestamp } : {}),
    },
    flush: () => {
      stderr.flush();
      stdout.flush();
    },
  };
}
