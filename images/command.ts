import { spawn } from "node:child_process";

export interface CommandOptions {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
  /** Told each line of output as it comes. */
  onLine?: (line: string) => void;
}

/** Runs a program to its end and gives its standard output; a failure carries the end of what it printed. */
export function runCommand(command: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    let stdout = "";
    let everything = "";
    let rest = "";
    const take = (chunk: string) => {
      everything = (everything + chunk).slice(-8000);
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) options.onLine?.(line);
    };
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      stdout += chunk;
      take(chunk);
    });
    child.stderr?.setEncoding("utf8").on("data", take);
    child.stdin?.end(options.input);
    child.on("error", (error) => reject(new Error(`cannot start ${command}: ${error.message}`)));
    child.on("close", (code, signal) => {
      if (code === 0) resolve(stdout);
      else reject(new Error(`${command} ${args[0] ?? ""} failed (${signal ?? `exit ${code}`}):\n${everything.trim()}`));
    });
  });
}

/** Whether a program can be run with success, for example `docker info`. */
export async function doesRun(command: string, args: readonly string[]): Promise<boolean> {
  return runCommand(command, args).then(
    () => true,
    () => false,
  );
}
