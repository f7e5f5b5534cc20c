import type { Logger } from "../ports/logger.ts";

export interface UntilSignalOptions {
  logger: Logger;
  /** @default SIGTERM and SIGINT */
  signals?: readonly NodeJS.Signals[];
  /** Where signals arrive and exit codes go. @default the process */
  host?: SignalHost;
}

/** The part of the process object that is needed here. */
export interface SignalHost {
  on(signal: NodeJS.Signals, handler: () => void): unknown;
  off(signal: NodeJS.Signals, handler: () => void): unknown;
  exit(code: number): void;
}

/**
 * Runs the program with a signal that aborts on the first SIGTERM or SIGINT; a second one exits at once. Resolves with the
 * exit code: 0 after a clean end, 1 after a failure (which is logged).
 */
export async function runUntilSignal(
  main: (signal: AbortSignal) => Promise<void>,
  options: UntilSignalOptions,
): Promise<number> {
  const host = options.host ?? process;
  const stop = new AbortController();
  const handlers = (options.signals ?? ["SIGTERM", "SIGINT"]).map((name) => ({
    name,
    handle: () => {
      if (stop.signal.aborted) {
        options.logger.warning("Second signal, exiting at once", { signal: name });
        host.exit(1);
        return;
      }
      options.logger.info("Signal received, stopping", { signal: name });
      stop.abort(new Error(`received ${name}`));
    },
  }));
  for (const { name, handle } of handlers) host.on(name, handle);
  try {
    await main(stop.signal);
    return 0;
  } catch (error) {
    if (stop.signal.aborted && error === stop.signal.reason) return 0;
    options.logger.error("Program failed", { error });
    return 1;
  } finally {
    for (const { name, handle } of handlers) host.off(name, handle);
  }
}
