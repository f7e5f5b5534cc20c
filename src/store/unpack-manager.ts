// Unpacks what `manager-archive.ts` packs, from a stream that nobody vouches for yet.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { chmod, copyFile, type FileHandle, link, mkdir, open, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseTarHeader, tarBlockBytes, tarPadding } from "../barman/tar-header.ts";
import { launcherEntry, type ManagerRelease, manifestName, releaseEntry, runtimePrefix } from "./manager-archive.ts";

/** Largest archive that is taken, in bytes; a real one has some 130 MB. */
const maxArchiveBytes = 1024 * 1024 * 1024;
const maxReleaseBytes = 4096;

/** The stream is no archive of ours, or is cut short; it says where. */
export class ManagerArchiveError extends Error {
  override readonly name = "ManagerArchiveError";
}

/**
 * Writes an archive's files below a folder that is empty or absent, and gives the hash of all its bytes. A file that is already in `present`
 * with the same content becomes a second name of that one, so that a node that did not change takes no space.
 */
export async function unpackManager(
  source: AsyncIterable<Uint8Array>,
  options: { folder: string; present?: string },
): Promise<{ hash: string; release: ManagerRelease }> {
  const reader = new StreamReader(source);
  const release = await readRelease(reader);
  await mkdir(join(options.folder, runtimePrefix), { recursive: true });
  const seen = new Set<string>();
  for (;;) {
    const entry = await nextEntry(reader);
    if (!entry) break;
    const { name } = entry;
    if (!isWanted(name) || seen.has(name)) throw new ManagerArchiveError(`the archive holds ${JSON.stringify(name)}`);
    seen.add(name);
    await writeEntry(reader, entry, options);
    await reader.skip(tarPadding(entry.size));
  }
  if (!seen.has(launcherEntry)) throw new ManagerArchiveError(`the archive holds no ${launcherEntry}`);
  const hash = await reader.finish();
  const manifest = { version: release.version, arch: release.arch, hash };
  await writeFile(join(options.folder, runtimePrefix, manifestName), `${JSON.stringify(manifest)}\n`);
  return { hash, release };
}

interface Entry {
  name: string;
  size: number;
  mode: number;
}

async function nextEntry(reader: StreamReader): Promise<Entry | undefined> {
  const block = await reader.take(tarBlockBytes);
  const header = parseTarHeader(block);
  if (header === "end") return undefined;
  if ("error" in header) throw new ManagerArchiveError(`this is no archive of an instance manager: ${header.error}`);
  if (header.type !== "0") throw new ManagerArchiveError(`the archive's entry ${header.name} is no plain file`);
  return { name: header.name, size: header.size, mode: header.mode };
}

async function readRelease(reader: StreamReader): Promise<ManagerRelease> {
  const entry = await nextEntry(reader);
  if (entry?.name !== releaseEntry || entry.size > maxReleaseBytes) {
    throw new ManagerArchiveError(`this is no archive of an instance manager: it does not begin with ${releaseEntry}`);
  }
  const text = Buffer.from(await reader.take(entry.size)).toString("utf8");
  await reader.skip(tarPadding(entry.size));
  let value: Partial<Record<keyof ManagerRelease, unknown>>;
  try {
    value = JSON.parse(text) as typeof value;
  } catch (error) {
    throw new ManagerArchiveError(`${releaseEntry} in the archive is no JSON`, { cause: error });
  }
  const { format, version, arch } = value;
  if (format !== 1 || typeof version !== "string" || typeof arch !== "string") {
    throw new ManagerArchiveError(`the archive has a form that this instance manager does not know: ${text.trim()}`);
  }
  return { format, version, arch };
}

function isWanted(name: string): boolean {
  if (name === launcherEntry) return true;
  if (!name.startsWith(runtimePrefix) || name === `${runtimePrefix}${manifestName}`) return false;
  return name.split("/").every((part) => /^[A-Za-z0-9_+][A-Za-z0-9._+-]*$/.test(part));
}

async function writeEntry(
  reader: StreamReader,
  { name, size, mode }: Entry,
  { folder, present }: { folder: string; present?: string },
): Promise<void> {
  const target = join(folder, name);
  await mkdir(dirname(target), { recursive: true });
  const twin = present === undefined ? undefined : join(present, name);
  const same = twin === undefined ? 0 : await countSame(reader, twin, size, mode);
  if (twin !== undefined && same === size) return linkOrCopy(twin, target, mode);
  const file = await open(target, "wx", mode & 0o777);
  try {
    if (twin !== undefined && same > 0) await copyStart(twin, same, file);
    for await (const chunk of reader.read(size - same)) await file.writeFile(chunk);
    // The process's umask has no say here.
    await file.chmod(mode & 0o777);
  } finally {
    await file.close();
  }
}

/** Another user's file may not be linked everywhere. */
async function linkOrCopy(from: string, to: string, mode: number): Promise<void> {
  try {
    await link(from, to);
  } catch {
    await copyFile(from, to);
    await chmod(to, mode & 0o777);
  }
}

/** Takes as much of the entry from the stream as is equal to the file there is; gives how much that was. */
async function countSame(reader: StreamReader, path: string, size: number, mode: number): Promise<number> {
  const there = await stat(path).catch(() => undefined);
  // The launcher's own mode is stricter than the archive's; what counts is that it may be run.
  if (!there?.isFile() || there.size !== size || (there.mode & 0o100) !== (mode & 0o100)) return 0;
  const file = await open(path, "r");
  try {
    let at = 0;
    while (at < size) {
      const chunk = await reader.peek(size - at);
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(chunk.length), 0, chunk.length, at);
      if (bytesRead !== chunk.length || !buffer.subarray(0, bytesRead).equals(chunk)) return at;
      reader.consume(chunk.length);
      at += chunk.length;
    }
    return at;
  } finally {
    await file.close();
  }
}

async function copyStart(path: string, length: number, into: FileHandle): Promise<void> {
  for await (const chunk of createReadStream(path, { start: 0, end: length - 1 }))
    await into.writeFile(chunk as Buffer);
}

/** Bytes of a stream in pieces of the length that is asked for, all of them hashed. */
class StreamReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #hash = createHash("sha256");
  #rest: Buffer = Buffer.alloc(0);
  #total = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async #fill(): Promise<boolean> {
    if (this.#rest.length > 0) return true;
    for (;;) {
      const { done, value } = await this.#source.next();
      if (done) return false;
      this.#total += value.length;
      if (this.#total > maxArchiveBytes) throw new ManagerArchiveError("the archive is too large");
      if (value.length === 0) continue;
      this.#hash.update(value);
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      return true;
    }
  }

  /** The bytes at hand, at least one and at most so many, without passing over them. */
  async peek(most: number): Promise<Buffer> {
    if (!(await this.#fill())) throw new ManagerArchiveError(`the archive ends early, after ${this.#total} bytes`);
    return this.#rest.subarray(0, most);
  }

  consume(length: number): void {
    this.#rest = this.#rest.subarray(length);
  }

  async *read(length: number): AsyncGenerator<Buffer> {
    for (let left = length; left > 0; ) {
      const chunk = await this.peek(left);
      yield chunk;
      this.consume(chunk.length);
      left -= chunk.length;
    }
  }

  async take(length: number): Promise<Uint8Array> {
    const parts: Buffer[] = [];
    for await (const chunk of this.read(length)) parts.push(Buffer.from(chunk));
    return Buffer.concat(parts);
  }

  async skip(length: number): Promise<void> {
    for await (const _ of this.read(length));
  }

  /** Reads what follows the last entry, and gives the hash of everything. */
  async finish(): Promise<string> {
    while (await this.#fill()) this.consume(this.#rest.length);
    return this.#hash.digest("hex");
  }
}
