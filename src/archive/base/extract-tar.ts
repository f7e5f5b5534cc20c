// The entries of an archive into a folder. Nothing is ever written outside of it: names that lead out are refused, and so is
// every path through a link, for a link may lead anywhere.
import { checkEntryPath, foldersAbove } from "../../barman/safe-path.ts";
import type { TarEntry } from "../../barman/tar-header.ts";
import type { TreeFiles } from "../../ports/tree-files.ts";
import { BaseError } from "./base-error.ts";
import { type ReadEntry, readTar } from "./read-tar.ts";
import { WriteBehind } from "./write-behind.ts";

/** A file that is held back, to be written after everything else. */
export interface HeldFile {
  path: string;
  mode: number;
  mtimeNs: bigint;
  bytes: Uint8Array;
}

export interface Extraction {
  tree: TreeFiles;
  /** Absolute; exists. */
  folder: string;
  /** Path of a small file that is held back. */
  holdBack?: string;
  /** Whether the disk is kept busy with what is written, because all of it will be synced in the end. @default false */
  syncEarly?: boolean;
  signal: AbortSignal;
}

const mostHeldBytes = 1024 * 1024;

/** Extracts the archives of one folder, one after another. */
export class Extractor {
  files = 0;
  bytes = 0;
  held: HeldFile | undefined;
  readonly #extraction: Extraction;
  readonly #links = new Set<string>();
  readonly #folders = new Set<string>();
  readonly #writes: WriteBehind;

  constructor(extraction: Extraction) {
    this.#extraction = extraction;
    const { tree, syncEarly } = extraction;
    this.#writes = new WriteBehind(syncEarly ? { sync: (path) => tree.sync(path) } : {});
  }

  /** Resolves when all files are written and closed. After a failure nothing is written any more. */
  async extract(chunks: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const read of readTar(chunks)) {
        this.#extraction.signal.throwIfAborted();
        await this.#one(read);
      }
      await this.#writes.finish();
    } finally {
      await this.#writes.settle();
    }
  }

  async #one({ entry, content }: ReadEntry): Promise<void> {
    const path = this.#safePath(entry.name, entry.name);
    if (entry.kind === "directory") return this.#folder(path, entry);
    if (path === "") throw refuse(entry.name, "it names the folder itself");
    await this.#foldersOf(path);
    if (entry.kind === "file") return this.#file(path, entry, content);
    await this.#replace(path);
    if (entry.kind === "symlink") {
      await this.#extraction.tree.symlink(entry.linkName, this.#absolute(path));
      this.#links.add(path);
    } else {
      const existing = this.#safePath(entry.linkName, entry.name);
      if (this.#links.has(existing)) throw refuse(entry.name, "it leads through a link");
      await this.#extraction.tree.link(this.#absolute(existing), this.#absolute(path));
    }
    this.files += 1;
  }

  async #folder(path: string, entry: TarEntry): Promise<void> {
    if (path !== "") await this.#foldersOf(path);
    if (this.#links.has(path)) throw refuse(entry.name, "it leads through a link");
    await this.#extraction.tree.makeDirectory(this.#absolute(path), entry.mode);
    this.#folders.add(path);
  }

  async #file(path: string, entry: TarEntry, content: AsyncIterable<Uint8Array>): Promise<void> {
    const { tree, holdBack } = this.#extraction;
    this.files += 1;
    this.bytes += entry.size;
    if (path === holdBack) {
      this.held = { path, mode: entry.mode, mtimeNs: entry.mtimeNs, bytes: await gather(content, entry) };
      return;
    }
    await this.#replace(path);
    const absolute = this.#absolute(path);
    await this.#writes.file(absolute, await tree.create(absolute, entry.mode), content, entry.mtimeNs);
  }

  /** A later entry of the same name replaces an earlier one, as it does for every reader of tar. */
  async #replace(path: string): Promise<void> {
    const { tree } = this.#extraction;
    const there = await tree.stat(this.#absolute(path));
    if (!there) return;
    if (there.kind === "directory") throw refuse(path, "a folder has the same name");
    await this.#writes.finish();
    await tree.remove(this.#absolute(path));
    this.#links.delete(path);
  }

  async #foldersOf(path: string): Promise<void> {
    for (const folder of foldersAbove(path)) {
      if (this.#links.has(folder)) throw refuse(path, "it leads through a link");
      if (this.#folders.has(folder)) continue;
      await this.#extraction.tree.makeDirectory(this.#absolute(folder), 0o700);
      this.#folders.add(folder);
    }
  }

  #safePath(name: string, shown: string): string {
    const checked = checkEntryPath(name);
    if ("error" in checked) throw refuse(shown, checked.error);
    for (const folder of foldersAbove(checked.path)) {
      if (this.#links.has(folder)) throw refuse(shown, "it leads through a link");
    }
    return checked.path;
  }

  #absolute(path: string): string {
    return path === "" ? this.#extraction.folder : `${this.#extraction.folder}/${path}`;
  }
}

async function gather(content: AsyncIterable<Uint8Array>, entry: TarEntry): Promise<Uint8Array> {
  if (entry.size > mostHeldBytes) throw refuse(entry.name, `${entry.size} bytes are too many for it`);
  const parts: Uint8Array[] = [];
  for await (const chunk of content) parts.push(Uint8Array.from(chunk));
  return Buffer.concat(parts);
}

function refuse(name: string, reason: string): BaseError {
  return new BaseError("damaged", `the archive's entry ${JSON.stringify(name)} is refused: ${reason}`);
}
