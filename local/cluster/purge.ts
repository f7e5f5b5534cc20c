import { rmdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { cacheRoot } from "../tools/cache.ts";
import type { ClusterFolders } from "./folders.ts";

/** Removes the cluster's folder, and the programs and images that all clones of this user share. */
export function purge(folders: ClusterFolders): void {
  const { root, ...own } = folders;
  // Name by name: the folder may have been chosen by the user and hold other things.
  for (const path of Object.values(own)) {
    for (const each of [path, `${path}.new`]) rmSync(each, { recursive: true, force: true });
  }
  for (const folder of [root, dirname(root)]) removeIfEmpty(folder);
  rmSync(cacheRoot(), { recursive: true, force: true });
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOTEMPTY" && code !== "ENOENT") throw error;
  }
}
