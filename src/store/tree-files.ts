import { type BigIntStats, constants, type Dirent, promises as fs } from "node:fs";
import type { TreeEntry, TreeFiles, TreeKind, TreeSink, TreeSource, TreeStat } from "../ports/tree-files.ts";

/** Folder trees on the real file system. */
export function createTreeFiles(): TreeFiles {
  return {
    list,
    stat,
    resolve: (path) => fs.realpath(path),
    readLink: (path) => fs.readlink(path),
    open,
    makeDirectory,
    create,
    symlink: (target, path) => fs.symlink(target, path),
    link: (existing, path) => fs.link(existing, path),
    remove: (path) => fs.rm(path, { recursive: true, force: true }),
    sync,
  };
}

async function list(path: string): Promise<TreeEntry[] | undefined> {
  const entries = await fs.readdir(path, { withFileTypes: true }).catch(undefinedIfMissing);
  return entries
    ?.map((entry) => ({ name: entry.name, kind: kindOf(entry) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function stat(path: string, { follow = false }: { follow?: boolean } = {}): Promise<TreeStat | undefined> {
  const stats = await (follow ? fs.stat(path, { bigint: true }) : fs.lstat(path, { bigint: true })).catch(
    undefinedIfMissing,
  );
  return stats && toStat(stats);
}

async function open(path: string): Promise<TreeSource | undefined> {
  const file = await fs.open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(undefinedIfMissing);
  if (!file) return undefined;
  try {
    const stat = toStat(await file.stat({ bigint: true }));
    return {
      stat,
      async read(buffer, position) {
        let filled = 0;
        while (filled < buffer.length) {
          const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, position + filled);
          if (bytesRead === 0) break;
          filled += bytesRead;
        }
        return filled;
      },
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function makeDirectory(path: string, mode: number): Promise<void> {
  await fs.mkdir(path, { recursive: true, mode: 0o700 });
  await fs.chmod(path, mode);
}

async function create(path: string, mode: number): Promise<TreeSink> {
  // Writable for us whatever its mode will be; the mode of `open` would be cut by the umask anyway.
  const file = await fs.open(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o600,
  );
  return {
    async write(chunk) {
      for (let written = 0; written < chunk.length; ) {
        written += (await file.write(chunk, written, chunk.length - written)).bytesWritten;
      }
    },
    async close(options = {}) {
      try {
        await file.chmod(mode);
        if (options.mtimeNs !== undefined) {
          const seconds = Number(options.mtimeNs / 1000n) / 1e6;
          await file.utimes(seconds, seconds);
        }
        if (options.sync) await file.sync();
      } finally {
        await file.close();
      }
    },
  };
}

async function sync(path: string): Promise<void> {
  const file = await fs.open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

function toStat(stats: BigIntStats): TreeStat {
  return {
    kind: kindOf(stats),
    mode: Number(stats.mode & 0o7777n),
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    size: Number(stats.size),
    mtimeNs: stats.mtimeNs,
    links: Number(stats.nlink),
    identity: `${stats.dev}:${stats.ino}`,
  };
}

function kindOf(entry: Pick<Dirent, "isFile" | "isDirectory" | "isSymbolicLink">): TreeKind {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  return entry.isSymbolicLink() ? "symlink" : "other";
}

function undefinedIfMissing(error: unknown): undefined {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "ENOENT" && code !== "ENOTDIR") throw error;
  return undefined;
}
