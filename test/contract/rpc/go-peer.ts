import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The built Go side; the tool's own cache makes building fast after the first time. */
export interface GoProgram {
  path: string;
  remove(): Promise<void>;
}

/** Builds the Go side; `0.5` is the protocol that CloudNativePG 1.30 was built with. @default 0.6 */
export async function buildGoPeer(protocol: "0.5" | "0.6" = "0.6"): Promise<GoProgram> {
  const folder = await mkdtemp(join(tmpdir(), "rpc-go-"));
  const path = join(folder, "peer");
  const modules = protocol === "0.5" ? ["-modfile=go-0.5.mod"] : [];
  await run("go", ["build", ...modules, "-trimpath", "-o", path, "."], { cwd: join(import.meta.dirname, "go") });
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** A running Go side: JSON lines in and out. */
export interface GoPeer {
  child: ChildProcess;
  /** Sends a line and gives back the next one. */
  ask<T>(line: unknown): Promise<T>;
  /** The next line that comes. */
  next<T>(): Promise<T>;
  stop(): Promise<void>;
}

/** Starts the Go side in a mode. */
export function startGoPeer(
  program: GoProgram,
  mode: "client" | "server" | "patch",
  flags: Record<string, string>,
): GoPeer {
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const child = spawn(program.path, [...args, mode], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async <T>(): Promise<T> => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`the Go ${mode} ended`);
    return JSON.parse(value) as T;
  };
  return {
    child,
    next,
    ask(line) {
      child.stdin.write(`${JSON.stringify(line)}\n`);
      return next();
    },
    stop: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) resolve();
        child.once("exit", () => resolve());
        child.kill("SIGKILL");
      }),
  };
}
