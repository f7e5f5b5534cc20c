import { promises as fs, constants as fsConstants } from "node:fs";
import { dirname } from "node:path";
import type { Files } from "../ports/files.ts";

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Forces a folder's entries to disk, so that a rename survives a crash. */
async function syncFolder(path: string): Promise<void> {
  const folder = await fs.open(path, fsConstants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function readOrUndefined(path: string): Promise<Buffer | undefined> {
  try {
    return await fs.readFile(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Changes nothing where nothing is to be changed: also that is a write, and on a disk that hangs nobody comes back from it. */
async function setMode(path: string, mode: number): Promise<void> {
  if (((await fs.stat(path)).mode & 0o7777) !== mode) await fs.chmod(path, mode);
}

let temporaryCounter = 0;

async function writeAtomic(path: string, content: string | Uint8Array, mode?: number): Promise<boolean> {
  const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : Buffer.from(content);
  const old = await readOrUndefined(path);
  if (old?.equals(bytes)) {
    // Equal content with another mode is still put right.
    if (mode !== undefined) await setMode(path, mode);
    return false;
  }
  temporaryCounter += 1;
  const temporary = `${path}.${process.pid}.${temporaryCounter}.tmp`;
  // The name comes again after a restart of the container, so what a killed process left is written over.
  const file = await fs.open(temporary, "w", 0o600);
  try {
    await file.chmod(mode ?? 0o600);
    await file.writeFile(bytes);
    await file.sync();
  } catch (error) {
    await file.close();
    await fs.rm(temporary, { force: true });
    throw error;
  }
  await file.close();
  await fs.rename(temporary, path);
  await syncFolder(dirname(path));
  return true;
}

/** File operations on the real file system. */
export function createFiles(): Files {
  return {
    read: async (path) => (await readOrUndefined(path))?.toString("utf8"),
    writeAtomic,
    exists: async (path) => {
      try {
        await fs.lstat(path);
        return true;
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
    },
    remove: async (path, options) => {
      await fs.rm(path, { force: true, recursive: options?.recursive ?? false });
    },
    rename: (from, to) => fs.rename(from, to),
    makeDirectory: async (path, mode) => {
      await fs.mkdir(path, { recursive: true, ...(mode === undefined ? {} : { mode }) });
      if (mode !== undefined) await setMode(path, mode);
    },
    list: async (path) => {
      try {
        return (await fs.readdir(path)).sort();
      } catch (error) {
        if (isMissing(error)) return [];
        throw error;
      }
    },
    chmod: setMode,
    symlink: (target, path) => fs.symlink(target, path),
    readLink: async (path) => {
      try {
        return await fs.readlink(path);
      } catch (error) {
        // EINVAL: it is there but no link.
        if (isMissing(error) || (error as NodeJS.ErrnoException).code === "EINVAL") return undefined;
        throw error;
      }
    },
  };
}
