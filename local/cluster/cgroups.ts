import { existsSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../process/wait.ts";

/** Parent control group of every container of a clone's local cluster. */
export function cgroupParent(clone: string): string {
  return `/cnpg-ts-${clone}`;
}

/** Mount points of all control group hierarchies, of both versions, from the text of /proc/mounts. */
export function parseCgroupMounts(mounts: string): string[] {
  return mounts
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([, , type]) => type === "cgroup" || type === "cgroup2")
    .map(([, mountPoint = ""]) => mountPoint);
}

/** Existing folders of a control group, one for each hierarchy that has it. */
export function cgroupFolders(parent: string): string[] {
  return parseCgroupMounts(readFileSync("/proc/mounts", "utf8"))
    .map((mountPoint) => join(mountPoint, parent))
    .filter((folder) => existsSync(folder));
}

/** Removes a control group with everything below it; its processes must have been killed. */
export async function removeCgroups(parent: string): Promise<void> {
  for (const folder of cgroupFolders(parent)) {
    // A killed process leaves its group a moment after the signal.
    await waitFor(`removal of control group ${folder}`, async () => removeTree(folder), { timeoutMs: 10_000 });
  }
}

function removeTree(folder: string): boolean {
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory() && !removeTree(join(folder, entry.name))) return false;
    }
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}
