// One stream that holds a whole instance manager: launcher, node, its libraries and the programs. Its SHA-256 is the hash
// that instances report and that clusters list, so every release packs it byte for byte the same way.
import { createHash } from "node:crypto";
import { open, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { formatTarHeader, tarEnd, tarPadding } from "../barman/tar-header.ts";

/** What the first entry says: that this is one of our archives, and what is in it. */
export interface ManagerRelease {
  /** Form of the archive. */
  format: 1;
  version: string;
  /** As Go and container images spell it. */
  arch: string;
}

/** A manager ready to be streamed. Nothing of it is kept in memory. */
export interface ManagerArchive {
  /** Length of the stream in bytes. */
  size: number;
  /** Each piece holds good until the next one is asked for: a small memory serves the whole stream. */
  read(): AsyncIterable<Uint8Array>;
}

export const releaseEntry = "release.json";
export const launcherEntry = "manager";
export const runtimePrefix = "runtime/";
/** Says the archive's own hash, so it can't be part of it; whoever unpacks the archive writes it. */
export const manifestName = "manifest.json";

const chunkBytes = 128 * 1024;

type Entry = { name: string; mode: number; size: number } & ({ text: Uint8Array } | { path: string });

/** Packs a launcher and a runtime folder, with the names sorted and without times or owners. */
export async function openManagerArchive(options: {
  launcher: string;
  runtimeFolder: string;
  release: Omit<ManagerRelease, "format">;
}): Promise<ManagerArchive> {
  const { version, arch } = options.release;
  const text = Buffer.from(`${JSON.stringify({ format: 1, version, arch } satisfies ManagerRelease)}\n`);
  const files = [
    { name: launcherEntry, path: options.launcher },
    ...(await listFiles(options.runtimeFolder)).map((name) => ({
      name: `${runtimePrefix}${name}`,
      path: join(options.runtimeFolder, name),
    })),
  ];
  const entries: Entry[] = [{ name: releaseEntry, mode: 0o644, size: text.length, text }];
  for (const file of files) {
    const { size, mode } = await stat(file.path);
    entries.push({ ...file, size, mode: mode & 0o100 ? 0o755 : 0o644 });
  }
  const length = entries.reduce((sum, it) => sum + header(it).length + it.size + tarPadding(it.size), 0);
  return { size: length + tarEnd(length).length, read: () => stream(entries, length) };
}

/** SHA-256 of the whole stream, in hex. */
export async function hashManagerArchive(archive: ManagerArchive): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of archive.read()) hash.update(chunk);
  return hash.digest("hex");
}

/** What a manager that lies unpacked says of itself. */
export interface ManagerManifest {
  version: string;
  arch: string;
  hash: string;
  /** Short hash of the commit it was built from; `none` where that is not known, as after an upgrade in place. */
  commit: string;
}

/** What is known of a manager that lies unpacked in a runtime folder; `undefined` where none does. */
export async function readManagerManifest(runtimeFolder: string): Promise<ManagerManifest | undefined> {
  const path = join(runtimeFolder, manifestName);
  try {
    const { version, arch, hash, commit } = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
    if (typeof hash !== "string" || hash === "") return undefined;
    return { version: String(version ?? ""), arch: String(arch ?? ""), hash, commit: String(commit ?? "") || "none" };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new Error(`${path} cannot be read: the image is damaged`, { cause: error });
  }
}

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((it) => it.isFile())
    .map((it) => join(it.parentPath, it.name).slice(join(folder, "/").length));
  return names.filter((it) => it !== manifestName).sort();
}

function header({ name, mode, size }: Entry): Uint8Array {
  return formatTarHeader({ name, kind: "file", mode, size, uid: 0, gid: 0, mtimeNs: 0n, linkName: "" });
}

async function* stream(entries: readonly Entry[], length: number): AsyncGenerator<Uint8Array> {
  for (const entry of entries) {
    yield header(entry);
    if ("text" in entry) yield entry.text;
    else yield* readExactly(entry.path, entry.size);
    const padding = tarPadding(entry.size);
    if (padding > 0) yield new Uint8Array(padding);
  }
  yield tarEnd(length);
}

async function* readExactly(path: string, size: number): AsyncGenerator<Uint8Array> {
  let length = 0;
  for await (const chunk of readFileSlowly(path)) {
    length += chunk.length;
    yield chunk;
  }
  if (length !== size) throw new Error(`${path} changed while it was read: ${length} bytes instead of ${size}`);
}

/** Reads a file through one buffer: a piece holds good until the next one is asked for. */
export async function* readFileSlowly(path: string): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes);
  const file = await open(path, "r");
  try {
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}
