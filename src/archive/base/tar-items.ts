// What goes into the tar archives of a base backup, in order: folders and files of a tree, as they are found. Before it: the
// folders that the server named. After it: the bytes of the archive.
import { type CopyDecision, tarNameOf } from "../../barman/copy-rules.ts";
import type { TarEntry } from "../../barman/tar-header.ts";
import type { TreeFiles, TreeSource, TreeStat } from "../../ports/tree-files.ts";

/** An entry and where its bytes come from. The one who takes it must close it. */
export interface TarItem {
  entry: TarEntry;
  content?: TreeSource | Uint8Array;
  /** Stays in the archive of the item before, however large that is. */
  joined?: boolean;
}

export interface TreeWalk {
  tree: TreeFiles;
  /** Absolute, without links. */
  root: string;
  /** Path relative to the root. */
  decide(path: string): CopyDecision;
  /** Whether the root itself has an entry. */
  withRoot: boolean;
  signal: AbortSignal;
}

/**
 * Walks a tree that changes meanwhile: a file or folder that vanished is passed over. Links to folders are not stored, for they
 * belong to this machine; links to files are.
 */
export async function* walkTree(walk: TreeWalk): AsyncGenerator<TarItem> {
  const root = await walk.tree.stat(walk.root);
  if (root?.kind !== "directory") throw new Error(`${walk.root} is no folder`);
  if (walk.withRoot) yield { entry: folderEntry(".", root) };
  yield* walkFolder(walk, "", new Map());
}

/** A file by its path, under a name of its own; `undefined` when it does not exist. */
export async function openItem(tree: TreeFiles, path: string, name: string): Promise<TarItem | undefined> {
  const source = await tree.open(path);
  return source && { entry: fileEntry(name, source.stat), content: source };
}

/** A file of text that exists only in the archive. */
export function textItem(name: string, text: string, gid: number): TarItem {
  const content = Buffer.from(text);
  const entry: TarEntry = {
    name,
    kind: "file",
    mode: 0o644,
    uid: 0,
    gid,
    size: content.length,
    mtimeNs: 0n,
    linkName: "",
  };
  return { entry, content, joined: true };
}

export async function closeItem(item: TarItem): Promise<void> {
  if (item.content && !(item.content instanceof Uint8Array)) await item.content.close();
}

async function* walkFolder(walk: TreeWalk, folder: string, linked: Map<string, string>): AsyncGenerator<TarItem> {
  const entries = (await walk.tree.list(join(walk.root, folder))) ?? [];
  const folders: string[] = [];
  for (const { name, kind } of entries) {
    walk.signal.throwIfAborted();
    const path = folder === "" ? name : `${folder}/${name}`;
    if (walk.decide(path) === "leaveOut") continue;
    if (kind === "directory") folders.push(path);
    else if (kind === "symlink") yield* linkItem(walk, path);
    else if (kind === "file") yield* fileItem(walk, path, linked);
  }
  for (const path of folders) {
    const stat = await walk.tree.stat(join(walk.root, path));
    if (stat?.kind !== "directory") continue;
    yield { entry: folderEntry(tarNameOf(path), stat) };
    yield* walkFolder(walk, path, linked);
  }
}

async function* linkItem(walk: TreeWalk, path: string): AsyncGenerator<TarItem> {
  const absolute = join(walk.root, path);
  const [stat, target] = [await walk.tree.stat(absolute), await walk.tree.stat(absolute, { follow: true })];
  if (stat?.kind !== "symlink" || target?.kind === "directory") return;
  const linkName = await walk.tree.readLink(absolute);
  yield { entry: { ...facts(stat), name: tarNameOf(path), kind: "symlink", size: 0, linkName } };
}

async function* fileItem(walk: TreeWalk, path: string, linked: Map<string, string>): AsyncGenerator<TarItem> {
  const item = await openItem(walk.tree, join(walk.root, path), tarNameOf(path));
  if (!item || !(item.content && "stat" in item.content)) return;
  const { stat } = item.content;
  const first = stat.links > 1 ? linked.get(stat.identity) : undefined;
  if (first !== undefined) {
    await closeItem(item);
    yield { entry: { ...item.entry, kind: "hardlink", size: 0, linkName: first } };
    return;
  }
  if (stat.links > 1) linked.set(stat.identity, item.entry.name);
  yield item;
}

function folderEntry(name: string, stat: TreeStat): TarEntry {
  return { ...facts(stat), name, kind: "directory", size: 0, linkName: "" };
}

function fileEntry(name: string, stat: TreeStat): TarEntry {
  return { ...facts(stat), name, kind: "file", size: stat.size, linkName: "" };
}

function facts({ mode, uid, gid, mtimeNs }: TreeStat) {
  return { mode, uid, gid, mtimeNs };
}

function join(root: string, path: string): string {
  return path === "" ? root : `${root}/${path}`;
}
