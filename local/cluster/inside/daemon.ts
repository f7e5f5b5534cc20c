import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, mkdirSync, openSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { lastLines } from "../../process/background.ts";
import { identify, isAlive, type ProcessIdentity, signal } from "../../process/identity.ts";
import { waitFor } from "../../process/wait.ts";
import { readRecord, writeRecord } from "./record.ts";

export interface Daemon {
  name: string;
  command: string;
  args: readonly string[];
  /** Text of the configuration files it reads; a change restarts it, as a change of its command line does. */
  configuration?: readonly string[];
  env?: Record<string, string>;
  /** Working folder. @default "/" */
  cwd?: string;
  /** Whether it does its work. @default true once it runs */
  ready?: () => Promise<boolean>;
}

interface DaemonRecord extends ProcessIdentity {
  digest: string;
}

const maxLogBytes = 20 * 1024 * 1024;
const readyTimeoutMs = 120_000;

/** Starts and remembers the servers of one machine; all process numbers are those of its own namespace. */
export class Daemons {
  constructor(
    private readonly records: string,
    private readonly logs: string,
  ) {
    mkdirSync(records, { recursive: true });
    mkdirSync(logs, { recursive: true });
  }

  /** Leaves the daemon running if it runs as described, else starts it anew; resolves when it is ready. */
  async ensure(daemon: Daemon): Promise<void> {
    const digest = daemonDigest(daemon);
    const recordFile = join(this.records, `${daemon.name}.json`);
    const known = readRecord<DaemonRecord>(recordFile);
    if (known && isAlive(known)) {
      if (known.digest === digest && (await daemon.ready?.()) !== false) return;
      await end(known);
    }
    const logFile = join(this.logs, `${daemon.name}.log`);
    const started = start(daemon, logFile);
    writeRecord(recordFile, { ...started, digest });
    await waitFor(`${daemon.name} ready`, async () => (await daemon.ready?.()) ?? true, {
      timeoutMs: readyTimeoutMs,
      failure: () => (isAlive(started) ? undefined : `it ended, ${logFile} says:\n${lastLines(logFile)}`),
    });
  }
}

/** Identifies what a daemon runs with. */
export function daemonDigest({ command, args, configuration = [], env = {} }: Daemon): string {
  return createHash("sha256")
    .update(JSON.stringify([command, args, configuration, env]))
    .digest("hex");
}

function start(daemon: Daemon, logFile: string): ProcessIdentity {
  rotate(logFile);
  const log = openSync(logFile, "a");
  const child = spawn(daemon.command, daemon.args, {
    cwd: daemon.cwd ?? "/",
    env: { ...process.env, ...daemon.env },
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  let failure: Error | undefined;
  child.once("error", (error) => {
    failure = error;
  });
  child.unref();
  const identity = child.pid === undefined ? undefined : identify(child.pid);
  if (!identity) throw new Error(`${daemon.name} could not be started: ${failure?.message ?? lastLines(logFile)}`);
  return identity;
}

async function end(daemon: ProcessIdentity): Promise<void> {
  signal(daemon, "SIGTERM");
  const deadline = Date.now() + 10_000;
  await waitFor(
    `end of process ${daemon.pid}`,
    async () => {
      if (Date.now() > deadline) signal(daemon, "SIGKILL");
      return !isAlive(daemon);
    },
    { timeoutMs: 20_000 },
  );
}

/** Keeps one old log, so that a cluster that is restarted for months does not fill the disk. */
function rotate(logFile: string): void {
  try {
    if (statSync(logFile).size > maxLogBytes) renameSync(logFile, `${logFile}.old`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
