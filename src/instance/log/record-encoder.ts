import { wallClockNanos } from "../../runtime/wall-clock-nanos.ts";

export interface RecordEncoderOptions {
  /** Value of `logging_pod`; left out when absent. */
  podName?: string;
  /** @default "level" */
  levelKey?: string;
  /** @default "ts" */
  timestampKey?: string;
  /** Time as RFC 3339 text. @default the wall clock with nanoseconds */
  timestamp?: () => string;
}

/** Makes one JSON line (without newline) for something a program of the pod wrote. */
export type RecordEncoder = (logger: string, message: string, fields?: Readonly<Record<string, unknown>>) => string;

/**
 * The encoder behind the log pipes. It knows neither levels nor sampling, because what PostgreSQL logs is the user's data
 * and PostgreSQL has its own settings for what is worth a line.
 */
export function createRecordEncoder(options: RecordEncoderOptions = {}): RecordEncoder {
  const { podName, levelKey = "level", timestampKey = "ts", timestamp = wallClockNanos } = options;
  const pod = podName ? { logging_pod: podName } : {};
  return (logger, message, fields) =>
    JSON.stringify({ [levelKey]: "info", [timestampKey]: timestamp(), logger, msg: message, ...pod, ...fields });
}
