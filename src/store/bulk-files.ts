import { constants, promises as fs } from "node:fs";
import { dirname } from "node:path";
import type { BulkFiles, BulkSource } from "../ports/bulk-files.ts";
import type { FileState } from "../ports/file-state.ts";

let counter = 0;

/** Large files on the real file system. */
export function createBulkFiles(): BulkFiles {
  return { stat, open, write, move };
}

async function stat(path: string): Promise<FileState | undefined> {
  try {
    return toState(await fs.stat(path, { bigint: true }));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

async function open(path: string): Promise<BulkSource> {
  const file = await fs.open(path, constants.O_RDONLY);
  try {
    const state = toState(await file.stat({ bigint: true }));
    return {
      state,
      async read(position, length) {
        const buffer = Buffer.allocUnsafeSlow(length);
        let filled = 0;
        while (filled < length) {
          const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled);
          if (bytesRead === 0) break;
          filled += bytesRead;
        }
        return buffer.subarray(0, filled);
      },
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function write(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
  options: { sync?: boolean; mode?: number } = {},
): Promise<number> {
  const temporary = temporaryName(path);
  let size = 0;
  try {
    const file = await fs.open(temporary, "wx", options.mode ?? 0o600);
    try {
      for await (const chunk of chunks) {
        await file.appendFile(chunk);
        size += chunk.length;
      }
      if (options.sync) await file.sync();
    } finally {
      await file.close();
    }
    await fs.rename(temporary, path);
  } catch (error) {
    await fs.rm(temporary, { force: true });
    throw error;
  }
  if (options.sync) await syncFolder(dirname(path));
  return size;
}

async function move(from: string, to: string): Promise<void> {
  try {
    await fs.rename(from, to);
    return;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
  }
  const temporary = temporaryName(to);
  try {
    await fs.copyFile(from, temporary, constants.COPYFILE_FICLONE);
    await fs.rename(temporary, to);
  } catch (error) {
    await fs.rm(temporary, { force: true });
    throw error;
  }
  await fs.rm(from, { force: true });
}

function temporaryName(path: string): string {
  counter += 1;
  return `${path}.${process.pid}.${counter}.tmp`;
}

async function syncFolder(path: string): Promise<void> {
  const folder = await fs.open(path, constants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function toState(stats: { size: bigint; ino: bigint; mtimeNs: bigint }): FileState {
  return { size: Number(stats.size), inode: stats.ino.toString(), mtimeNs: stats.mtimeNs.toString() };
}
