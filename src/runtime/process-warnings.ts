import type { Logger } from "../ports/logger.ts";

/** The part of the process object that is needed here. */
export interface WarningHost {
  removeAllListeners(event: "warning"): unknown;
  on(event: "warning", handler: (warning: Error) => void): unknown;
}

/** Makes the runtime's own warnings records of the log: printed as they come, they would be lines among it that nobody can parse. */
export function logProcessWarnings(logger: Logger, host: WarningHost = process): void {
  host.removeAllListeners("warning");
  host.on("warning", (warning) => logger.warning("The runtime warns", { warning: warning.name, error: warning }));
}
