// What the archives of each folder hold. The data folder's goes on after its tree: the control file when everything else is
// copied, then, once PostgreSQL has ended the backup, its label.
import { isAbsolute } from "node:path";
import { controlFilePath, decideDataPath, decideTablespacePath } from "../../barman/copy-rules.ts";
import type { TreeFiles } from "../../ports/tree-files.ts";
import type { ServerFacts } from "./backup-session.ts";
import { BaseError } from "./base-error.ts";
import { closeItem, openItem, type TarItem, textItem, walkTree } from "./tar-items.ts";

const mostReadsOfControlFile = 20;

/** Items of a tablespace: what this version of the server keeps in its folder. */
export function tablespaceItems(
  tree: TreeFiles,
  folder: string,
  serverVersion: number,
  signal: AbortSignal,
): AsyncGenerator<TarItem> {
  const major = Math.floor(serverVersion / 10_000);
  return walkTree({ tree, root: folder, decide: (path) => decideTablespacePath(path, major), withRoot: false, signal });
}

/** Where a tablespace is; those made for tests lie in the data folder and are told relative to it. */
export function tablespaceFolder(dataFolder: string, location: string): string {
  return isAbsolute(location) ? location : `${dataFolder}/${location}`;
}

/** Items of the data folder. `endBackup` is called after the control file, and gives the label. */
export async function* dataItems(
  tree: TreeFiles,
  facts: ServerFacts,
  signal: AbortSignal,
  steps: { treeCopied(): Promise<void>; endBackup(): Promise<string> },
): AsyncGenerator<TarItem> {
  const root = await tree.resolve(facts.dataFolder);
  const inside = await foldersInside(tree, root, facts);
  yield* walkTree({ tree, root, decide: (path) => decideDataPath(path, inside), withRoot: true, signal });
  await steps.treeCopied();
  yield await controlFile(tree, root);
  yield* outsideFiles(tree, root, facts);
  const label = await steps.endBackup();
  const folder = await tree.stat(root);
  yield textItem("backup_label", label, folder?.gid ?? 0);
}

/** Tablespaces inside the data folder, relative to it: they have archives of their own. */
async function foldersInside(tree: TreeFiles, root: string, facts: ServerFacts): Promise<ReadonlySet<string>> {
  const inside = new Set<string>();
  for (const { oid, location } of facts.tablespaces) {
    inside.add(`pg_tblspc/${oid}`);
    const folder = await tree.resolve(tablespaceFolder(root, location));
    if (folder.startsWith(`${root}/`)) inside.add(folder.slice(root.length + 1));
  }
  return inside;
}

/** The control file, read until two readings agree: PostgreSQL may be in the middle of writing it. */
async function controlFile(tree: TreeFiles, root: string): Promise<TarItem> {
  const path = `${root}/${controlFilePath}`;
  let before: Uint8Array | undefined;
  for (let attempt = 0; attempt < mostReadsOfControlFile; attempt++) {
    const item = await openItem(tree, path, controlFilePath);
    if (!item || !(item.content && "read" in item.content)) break;
    const bytes = new Uint8Array(item.entry.size);
    try {
      await item.content.read(bytes, 0);
    } finally {
      await closeItem(item);
    }
    if (before && Buffer.compare(before, bytes) === 0) return { entry: item.entry, content: bytes };
    before = bytes;
  }
  throw new BaseError("local", `${path} cannot be read in one state`);
}

/** Configuration files that lie elsewhere go into the root of the archive under their own names. */
async function* outsideFiles(tree: TreeFiles, root: string, facts: ServerFacts): AsyncGenerator<TarItem> {
  const seen = new Set<string>();
  for (const path of [facts.configFile, facts.hbaFile, facts.identFile]) {
    if (path === "" || path.startsWith(`${facts.dataFolder}/`) || path.startsWith(`${root}/`) || seen.has(path))
      continue;
    seen.add(path);
    const target = await tree.stat(path, { follow: true });
    if (target === undefined && path === facts.identFile) continue;
    const item = target && (await openItem(tree, await tree.resolve(path), path.slice(path.lastIndexOf("/") + 1)));
    if (!item) throw new BaseError("local", `the configuration file ${path} is not there`);
    yield item;
  }
}
