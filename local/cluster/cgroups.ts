import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../process/wait.ts";
import { clusterKey } from "./folders.ts";

/** Parent control group of every container of the local cluster in that folder. */
export function cgroupParent(root: string): string {
  return `/cnpg-ts-${clusterKey(root)}`;
}

export interface Hierarchy {
  mountPoint: string;
  version: 1 | 2;
}

/** All mounted control group hierarchies, from the text of /proc/mounts. */
export function parseHierarchies(mounts: string): Hierarchy[] {
  return mounts
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([, , type]) => type === "cgroup" || type === "cgroup2")
    .map(([, mountPoint = "", type]) => ({ mountPoint, version: type === "cgroup" ? 1 : 2 }));
}

/** Control group below which the kubelet of a node keeps its pods; each removes what it does not know from its own. */
export function nodeCgroup(root: string, node: string): string {
  return join(cgroupParent(root), node);
}

/** Makes a control group in every hierarchy: the kubelet wants to find its root there. */
export function createCgroup(path: string): void {
  for (const { mountPoint, version } of hierarchies()) {
    let folder = mountPoint;
    for (const part of path.split("/").filter(Boolean)) {
      if (version === 2) enableControllers(folder);
      folder = join(folder, part);
      mkdirSync(folder, { recursive: true });
    }
  }
}

/** Hands every controller down from a group of version 2, where the machine has not done so. */
function enableControllers(group: string): void {
  const controllers = readFileSync(join(group, "cgroup.controllers"), "utf8").split(/\s+/).filter(Boolean);
  for (const controller of controllers) {
    try {
      writeFileSync(join(group, "cgroup.subtree_control"), `+${controller}`);
    } catch {
      // Some can't be handed down on some machines; the kubelet says so if it is one that it needs.
    }
  }
}

/** Existing folders of a control group, one for each hierarchy that has it. */
export function cgroupFolders(parent: string): string[] {
  return hierarchies()
    .map(({ mountPoint }) => join(mountPoint, parent))
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

function hierarchies(): Hierarchy[] {
  return parseHierarchies(readFileSync("/proc/mounts", "utf8"));
}
