import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import type {
  HostState,
  LogSpill,
  PostmasterCommand,
  PostmasterExit,
  PostmasterHost,
} from "../ports/postmaster-host.ts";
import { childEnvironment } from "./child-environment.ts";

/** Receives the postmaster's own output, line by line. */
export type OutputLine = (pipe: "stdout" | "stderr", line: string) => void;

function forwardLines(child: ChildProcess, onLine: OutputLine): void {
  for (const pipe of ["stdout", "stderr"] as const) {
    let rest = "";
    const stream = child[pipe];
    stream?.setEncoding("utf8");
    stream?.on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) onLine(pipe, line);
    });
  }
}

/** Stand-in for the launcher where there is none: jobs and tests. The postmaster does not outlive this process. */
export class DirectHost implements PostmasterHost {
  readonly #onLine: OutputLine;
  readonly #endProcess: (code: number) => void;
  readonly #handlers = new Set<(exit: PostmasterExit) => void>();
  #child: ChildProcess | undefined;
  #deadline: NodeJS.Timeout | undefined;
  readonly lost = new Promise<void>(() => undefined);

  constructor(onLine: OutputLine, endProcess: (code: number) => void) {
    this.#onLine = onLine;
    this.#endProcess = endProcess;
  }

  async hello(): Promise<HostState> {
    return { postmasterPid: this.#child?.pid, pendingSignal: undefined };
  }

  async takeLogs(): Promise<LogSpill> {
    return { path: undefined, droppedLines: 0 };
  }

  spawn(command: PostmasterCommand): Promise<number> {
    if (this.#child) return Promise.reject(new Error(`postmaster ${this.#child.pid} is still running`));
    const [program = "postgres", ...args] = command.argv;
    return new Promise((resolve, reject) => {
      const child = spawn(program, args, {
        cwd: command.cwd,
        env: childEnvironment(command.env),
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
      });
      this.#child = child;
      forwardLines(child, this.#onLine);
      child.once("spawn", () => resolve(child.pid as number));
      child.once("error", (error) => {
        this.#child = undefined;
        reject(new Error(`cannot start ${program}: ${error.message}`, { cause: error }));
      });
      child.once("exit", (code, signal) => {
        this.#child = undefined;
        const exit = { pid: child.pid as number, code, signal: signal ? constants.signals[signal] : 0 };
        for (const handler of this.#handlers) handler(exit);
      });
    });
  }

  onPostmasterExit(handler: (exit: PostmasterExit) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  setDeadline(ms: number): void {
    clearTimeout(this.#deadline);
    if (ms <= 0) return;
    this.#deadline = setTimeout(() => this.#child?.kill("SIGKILL"), ms);
    this.#deadline.unref();
  }

  /** Without a launcher nobody could tell a disk that hangs from a slow one. */
  async probeVolumes(): Promise<void> {}

  /** Nothing outlives this process that could be told. */
  async keep(): Promise<void> {}

  async upgrade(): Promise<never> {
    throw new Error("there is no launcher that could be replaced with the runtime");
  }

  async exit(code: number): Promise<void> {
    this.#child?.kill("SIGKILL");
    this.#endProcess(code);
  }
}
