import type { TreeFiles } from "../../ports/tree-files.ts";
import { Lanes } from "../lanes.ts";
import { BaseError } from "./base-error.ts";

const syncsAtOnce = 4;
/** What a file system puts into its root by itself. */
const ownOfFileSystem = "lost+found";

/** Makes sure that a folder is there and empty; returns its path. */
export async function claimFolder(tree: TreeFiles, folder: string): Promise<string> {
  const there = await tree.stat(folder, { follow: true });
  if (!there) {
    await tree.makeDirectory(folder, 0o700);
    return folder;
  }
  const entries = there.kind === "directory" ? await tree.list(folder) : undefined;
  const first = entries?.find(({ name }) => name !== ownOfFileSystem);
  if (entries && !first) return folder;
  const what = entries ? `holds ${first?.name}` : "is no folder";
  throw new BaseError("notEmpty", `${folder} ${what}: a base backup is restored into empty folders only`);
}

/** Removes all that a folder holds. */
export async function emptyFolder(tree: TreeFiles, folder: string): Promise<void> {
  for (const { name } of (await tree.list(folder)) ?? []) {
    if (name !== ownOfFileSystem) await tree.remove(`${folder}/${name}`);
  }
}

/** Makes every file and folder of a tree durable; does not follow links. */
export async function syncTree(tree: TreeFiles, folder: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const lanes = new Lanes(syncsAtOnce);
  const files: Promise<void>[] = [];
  for (const { name, kind } of (await tree.list(folder)) ?? []) {
    const path = `${folder}/${name}`;
    if (kind === "directory" && name !== ownOfFileSystem) await syncTree(tree, path, signal);
    else if (kind === "file") files.push(lanes.run(() => tree.sync(path)));
  }
  await Promise.all(files);
  await tree.sync(folder);
}
