import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { withFileLock } from "../process/file-lock.ts";
import { cacheRoot } from "./cache.ts";

const run = promisify(execFile);

/**
 * Folder in the cache with the packages that a folder beside this file pins, installed when it is not there: programs that only
 * tests need, and that are too large for everybody's `npm ci`. Failure to install is a failure.
 */
export async function npmEnvironment(name: string): Promise<string> {
  const source = join(import.meta.dirname, name);
  const folder = join(cacheRoot(), "npm", `${name}-${await hashOf(source)}`);
  const done = join(folder, "complete");
  if (existsSync(done)) return folder;
  await mkdir(join(cacheRoot(), "npm"), { recursive: true });
  await withFileLock(
    `${folder}.lock`,
    () => undefined,
    async () => {
      if (existsSync(done)) return;
      await rm(folder, { recursive: true, force: true });
      await cp(source, folder, { recursive: true });
      await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder });
      await writeFile(done, "");
    },
  );
  return folder;
}

async function hashOf(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const entry of (await readdir(folder, { recursive: true, withFileTypes: true })).sort((a, b) =>
    a.name < b.name ? -1 : 1,
  )) {
    if (entry.isFile()) hash.update(entry.name).update(await readFile(join(entry.parentPath, entry.name)));
  }
  return hash.digest("hex").slice(0, 16);
}
