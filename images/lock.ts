import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Runs work that one process of this machine at a time may do, waiting for its turn.
 *
 * The lock is held by a `flock` process that ends when its input does, so it never outlives us.
 */
export async function withFileLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  await mkdir(dirname(file), { recursive: true });
  const holder = spawn("flock", [file, "sh", "-c", "echo locked; exec cat"], { stdio: ["pipe", "pipe", "ignore"] });
  const ended = once(holder, "close");
  try {
    const first = await Promise.race([once(holder.stdout, "data"), ended]);
    if (!Buffer.isBuffer(first[0])) throw new Error(`cannot lock ${file}: flock ended with ${String(first[0])}`);
    return await work();
  } finally {
    holder.stdin.end();
    await ended.catch(() => {});
  }
}
