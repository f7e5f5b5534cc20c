import { spawn } from "node:child_process";

/**
 * Runs a program of ours whose progress lines the user sees, and resolves with its exit code. Its standard input
 * ends when this process does, which it must take as the order to end too.
 */
export function runVisibly(command: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["pipe", 2, 2] });
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
}

/** Ends this process when the one that started it through `runVisibly` is gone, however that came about. */
export function endWithParent(): void {
  process.stdin.on("end", () => process.exit(1));
  process.stdin.resume();
  process.stdin.unref();
}
