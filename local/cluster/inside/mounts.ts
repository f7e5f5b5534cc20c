import { existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
import { run } from "../../process/run.ts";

/** Which of the folders lie in or below another one. */
export function foldersUnder(parent: string, folders: readonly string[]): string[] {
  return folders.filter((folder) => folder === parent || folder.startsWith(parent + sep));
}

/** Whether this mount namespace has been prepared before. */
export function isPrepared(): boolean {
  return existsSync(marker);
}

const marker = "/run/cnpg-ts-prepared";

/**
 * Hides the machine's folders of running programs from a node and gives it empty ones in memory. Folders
 * that the node needs stay reachable under their own names.
 */
export async function coverFolders(covered: readonly string[], keep: readonly string[]): Promise<void> {
  for (const folder of covered.map((each) => realpathSync(each))) {
    const kept = foldersUnder(folder, keep);
    const aside = "/mnt";
    const shelves = kept.map((_, index) => join(aside, String(index)));
    if (kept.length > 0) await run("mount", ["-t", "tmpfs", "cnpg-ts", aside]);
    for (const [index, path] of kept.entries()) {
      mkdirSync(shelves[index] as string);
      await run("mount", ["--bind", path, shelves[index] as string]);
    }
    await run("mount", ["-t", "tmpfs", "-o", "mode=0755", "cnpg-ts", folder]);
    for (const [index, path] of kept.entries()) {
      mkdirSync(path, { recursive: true });
      await run("mount", ["--move", shelves[index] as string, path]);
    }
    if (kept.length > 0) await run("umount", [aside]);
  }
  // Containers with mount propagation need shared mounts; the sharing ends at this namespace.
  await run("mount", ["--make-rshared", "/"]);
  writeFileSync(marker, "");
}

/** Shows a file of ours in place of the machine's, in this namespace only. */
export async function coverFile(path: string, replacement: string): Promise<void> {
  await run("mount", ["--bind", replacement, realpathSync(path)]);
}
