import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

/** A server that belongs to this process and dies with it. */
export interface BackgroundProcess {
  /** Why it ended; undefined while it runs. */
  failure(): string | undefined;
  /** Sends the signal and resolves when the process has ended. */
  stop(signal: NodeJS.Signals): Promise<void>;
}

/** Starts a server with both outputs in a log file, whose folder is the working folder. The kernel kills it when this process dies, however that happens. */
export function startInBackground(command: string, args: readonly string[], logFile: string): BackgroundProcess {
  const log = openSync(logFile, "a");
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "--", command, ...args], {
    cwd: dirname(logFile),
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  let failure: string | undefined;
  const ended = new Promise<void>((resolve) => {
    child.once("error", (error) => {
      failure = error.message;
      resolve();
    });
    child.once("exit", (code, signal) => {
      failure = `ended with ${code ?? signal}: ${lastLines(logFile)}`;
      resolve();
    });
  });
  return {
    failure: () => failure,
    stop: async (signal) => {
      kill(child, signal);
      await ended;
    },
  };
}

/** The end of a log file, for error messages. */
export function lastLines(file: string, count = 5): string {
  try {
    return readFileSync(file, "utf8").trimEnd().split("\n").slice(-count).join("\n");
  } catch {
    return "(no log)";
  }
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
}
