import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { cacheRoot } from "./cache.ts";

const run = promisify(execFile);
/** A lock older than this is that of an installer that was killed. */
const staleLockMs = 10 * 60_000;

/** Folder of a Python environment in the cache with these packages, made when it is not there. Failure to install is a failure. */
export async function pythonEnvironment(name: string, packages: readonly string[]): Promise<string> {
  const folder = join(cacheRoot(), "python", name);
  const done = join(folder, "complete");
  if (existsSync(done)) return folder;
  await mkdir(join(cacheRoot(), "python"), { recursive: true });
  const lock = `${folder}.lock`;
  while (!(await takeLock(lock))) {
    await sleep(500);
    if (existsSync(done)) return folder;
  }
  try {
    await rm(folder, { recursive: true, force: true });
    await run("python3", ["-m", "venv", folder]);
    await run(join(folder, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", ...packages]);
    await writeFile(done, "");
    return folder;
  } finally {
    await rm(lock, { recursive: true, force: true });
  }
}

async function takeLock(lock: string): Promise<boolean> {
  try {
    await mkdir(lock);
    return true;
  } catch {
    const age = await stat(lock).then(
      (stats) => Date.now() - stats.mtimeMs,
      () => 0,
    );
    if (age > staleLockMs) await rm(lock, { recursive: true, force: true });
    return false;
  }
}
