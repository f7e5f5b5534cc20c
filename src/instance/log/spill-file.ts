import { type FileHandle, open, rm } from "node:fs/promises";

/** Pipes in the order in which the launcher numbers them (docs/adr/0001). */
export const pipeNames = ["postgres", "postgres.csv", "postgres.json", "postmaster.out", "postmaster.err"] as const;

export type PipeName = (typeof pipeNames)[number];

const headBytes = 5;
/** The launcher reads in blocks of 64 KiB; anything far beyond is not a record of it. */
const maxRecordBytes = 1024 * 1024;

/**
 * Hands out what the launcher kept while no runtime read the pipes, in the order it came, and removes the file. A half
 * written last record is passed over. A missing file is an empty one.
 */
export async function replaySpillFile(
  path: string,
  take: (pipe: PipeName, bytes: Buffer) => void | Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const file = await openIfThere(path);
  if (!file) return;
  try {
    let position = 0;
    for (;;) {
      signal?.throwIfAborted();
      const record = await readRecord(file, position);
      if (!record) break;
      position += headBytes + record.bytes.length;
      if (record.pipe) await take(record.pipe, record.bytes);
    }
  } finally {
    await file.close();
  }
  await rm(path, { force: true });
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function readRecord(
  file: FileHandle,
  position: number,
): Promise<{ pipe: PipeName | undefined; bytes: Buffer } | undefined> {
  const head = Buffer.alloc(headBytes);
  const { bytesRead } = await file.read(head, 0, headBytes, position);
  if (bytesRead < headBytes) return undefined;
  const length = head.readUInt32BE(1);
  if (length > maxRecordBytes)
    throw new Error(`spill file has a record of ${length} bytes at ${position}; it is damaged`);
  const bytes = Buffer.alloc(length);
  const body = await file.read(bytes, 0, length, position + headBytes);
  return body.bytesRead < length ? undefined : { pipe: pipeNames[head[0] ?? 255], bytes };
}
