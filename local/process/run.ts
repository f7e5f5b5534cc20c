import { spawn } from "node:child_process";

export interface RunOptions {
  cwd?: string;
  /** Added to the caller's own environment. */
  env?: Record<string, string>;
  input?: string;
  /** Open file to read standard input from. */
  stdinFd?: number;
  /** Called for each line of stderr as it comes. */
  onLine?: (line: string) => void;
  timeoutMs?: number;
}

export interface RunResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end whatever its exit code; a missing program is exit code 127. */
export function tryRun(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: [options.stdinFd ?? (options.input === undefined ? "ignore" : "pipe"), "pipe", "pipe"],
      ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs, killSignal: "SIGKILL" }),
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    let line = "";
    child.stdout?.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on("data", (chunk: Buffer) => {
      stderr.push(chunk);
      const lines = (line + chunk.toString()).split("\n");
      line = lines.pop() ?? "";
      if (options.onLine) for (const each of lines) options.onLine(each);
    });
    // A program that ends without reading its input is judged by its exit code, not by the broken pipe.
    child.stdin?.on("error", () => {});
    child.stdin?.end(options.input);
    const text = (chunks: Buffer[]) => Buffer.concat(chunks).toString();
    child.on("error", (error) => {
      resolve({ code: 127, stdout: "", stderr: error.message });
    });
    child.on("close", (code) => {
      resolve({ code: code ?? 128, stdout: text(stdout), stderr: text(stderr) });
    });
  });
}

/** Runs a program and returns its standard output; rejects with the command and its last words when it fails. */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const result = await tryRun(command, args, options);
  if (result.code === 0) return result.stdout;
  const lastWords = (result.stderr.trim() || result.stdout.trim()).split("\n").slice(-12).join("\n");
  throw new Error(`${command} ${args.join(" ")} failed with exit code ${result.code}: ${lastWords}`);
}
