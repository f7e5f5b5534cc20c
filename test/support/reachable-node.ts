import { copyFileSync, linkSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/** Whether users that do not own anything here can get at a file: every folder above it lets them through. */
function isOpenToOthers(path: string): boolean {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

/**
 * Node for programs of other users: this process's own, or its file at another name in `folder` where the checkout lies in a
 * folder that only we may enter, as those of `mktemp` are.
 */
export function reachableNode(folder: string): string {
  if (isOpenToOthers(process.execPath)) return process.execPath;
  const node = join(folder, "node-for-others");
  try {
    linkSync(process.execPath, node);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return node;
    // Another file system.
    if (code !== "EXDEV") throw error;
    copyFileSync(process.execPath, node);
  }
  return node;
}
