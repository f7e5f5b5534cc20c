import { readdir } from "node:fs/promises";
import { dirname } from "node:path";
import { readManagerManifest } from "../store/manager-archive.ts";

/** Architectures for which the image of a program has a manager: its own, and one for each `operator/manager_*` file. */
export async function listArchitectures(program: string): Promise<string[]> {
  const runtimeFolder = dirname(program);
  const own = await readManagerManifest(runtimeFolder).catch(() => undefined);
  const names = await readdir(`${dirname(runtimeFolder)}/operator`).catch(() => []);
  const others = names.flatMap((name) => (name.startsWith("manager_") ? [name.slice("manager_".length)] : []));
  return [...new Set([...(own ? [own.arch] : []), ...others])].sort();
}
