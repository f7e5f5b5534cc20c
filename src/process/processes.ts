import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import type { Processes, RunOptions, RunResult } from "../ports/processes.ts";
import { childEnvironment } from "./child-environment.ts";

/** Time between the polite and the final signal to a child that must end. */
const killAfterMs = 5_000;
/** How long the pipes of an ended child are still read: a daemon it left behind may hold them open for good. */
const drainMs = 100;

/** Cuts a stream into lines for the callback; the last line needs no line feed. */
function streamLines(stream: Readable, onLine: (line: string) => void): () => void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
  });
  return () => {
    if (rest !== "") onLine(rest);
    rest = "";
  };
}

function collect(stream: Readable): () => string {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

/** Asks the child to end, and kills it when it does not; returns the way to stop waiting. */
function terminate(child: ChildProcess): () => void {
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  timer.unref();
  return () => clearTimeout(timer);
}

function withUmask<T>(umask: number | undefined, action: () => T): T {
  if (umask === undefined) return action();
  const former = process.umask(umask);
  try {
    return action();
  } finally {
    process.umask(former);
  }
}

function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const { signal, onLine } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const child = withUmask(options.umask, () =>
      spawn(command, args, {
        ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
        env: childEnvironment(options.env ?? process.env),
        stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      }),
    );
    const out = child.stdout as Readable;
    const err = child.stderr as Readable;
    const endOut = onLine ? streamLines(out, (line) => onLine("stdout", line)) : collect(out);
    const endErr = onLine ? streamLines(err, (line) => onLine("stderr", line)) : collect(err);
    let stopWaiting: (() => void) | undefined;
    const end = () => {
      stopWaiting ??= terminate(child);
    };
    const timer = options.timeoutMs === undefined ? undefined : setTimeout(end, options.timeoutMs);
    signal?.addEventListener("abort", end, { once: true });

    let settled = false;
    const release = () => {
      settled = true;
      clearTimeout(timer);
      stopWaiting?.();
      signal?.removeEventListener("abort", end);
    };
    const finish = (code: number | null, endedBy: string | null) => {
      if (settled) return;
      release();
      out.destroy();
      err.destroy();
      resolve({ code, signal: endedBy, stdout: endOut() ?? "", stderr: endErr() ?? "" });
    };
    child.once("error", (error) => {
      if (settled) return;
      release();
      reject(new Error(`cannot start ${command}: ${error.message}`, { cause: error }));
    });
    child.once("close", finish);
    child.once("exit", (code, endedBy) => {
      setTimeout(() => finish(code, endedBy), drainMs);
    });
    if (options.input !== undefined) {
      child.stdin?.on("error", () => undefined);
      child.stdin?.end(options.input);
    }
  });
}

/** Runs child programs by `child_process.spawn`, without a shell. */
export function createProcesses(): Processes {
  return { run };
}
