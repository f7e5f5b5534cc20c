import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Runs a function while an exclusive lock on a file is held; the kernel frees it when this process dies.
 * `onWait` is called once if another process holds the lock.
 */
export async function withFileLock<T>(path: string, onWait: () => void, run: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(path), { recursive: true });
  // flock(1) keeps the lock for as long as its child lives, and `cat` lives until our end of the pipe is closed.
  const holder = spawn("flock", ["--exclusive", path, "sh", "-c", "echo locked; exec cat"], {
    stdio: ["pipe", "pipe", "inherit"],
    // An interrupt from the terminal must not free the lock before our own work has stopped.
    detached: true,
  });
  const waiting = setTimeout(onWait, 500);
  try {
    await new Promise<void>((resolve, reject) => {
      holder.stdout.once("data", () => resolve());
      holder.once("error", reject);
      holder.once("exit", (code) => reject(new Error(`cannot lock ${path}: flock ended with ${code}`)));
    });
    clearTimeout(waiting);
    return await run();
  } finally {
    clearTimeout(waiting);
    holder.stdin.end();
  }
}
