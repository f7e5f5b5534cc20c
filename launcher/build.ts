import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const folder = dirname(fileURLToPath(import.meta.url));
const flags = ["-static", "-O2", "-g0", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-Wl,--build-id=none"];

/**
 * Compiles the launcher and gives the path of the static binary, whose name is `manager`.
 *
 * The result is kept by the hash of its sources, so that a second call does no work.
 */
export async function buildLauncher(): Promise<string> {
  const sources = (await readdir(folder)).filter((name) => /\.[ch]$/.test(name)).sort();
  const compiler = process.env["CC"] || "gcc";
  const hash = createHash("sha256").update([compiler, ...flags].join(" "));
  for (const name of sources) hash.update(`${name}\0`).update(await readFile(join(folder, name)));
  const output = join(dirname(folder), "build", "launcher", hash.digest("hex").slice(0, 16), "manager");
  if (existsSync(output)) return output;

  await mkdir(dirname(output), { recursive: true });
  // Not by the process: two parts of the image build compile side by side in one.
  const unfinished = `${output}.${randomUUID()}`;
  const units = sources.filter((name) => name.endsWith(".c"));
  try {
    // Compiled from inside the folder, so that no path of this machine gets into the binary.
    await promisify(execFile)(compiler, [...flags, "-s", "-o", unfinished, ...units], { cwd: folder }).catch(refused);
    await rename(unfinished, output);
  } finally {
    await rm(unfinished, { force: true });
  }
  return output;
}

function refused(error: unknown): never {
  const detail = error instanceof Error && "stderr" in error && error.stderr ? error.stderr : error;
  throw new Error(`The launcher cannot be compiled; is gcc with a static libc (libc6-dev) installed?\n${detail}`);
}
