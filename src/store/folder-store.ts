import { createHash } from "node:crypto";
import { constants, promises as fs } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { type ObjectInfo, type ObjectPage, type ObjectStore, ObjectStoreError } from "../ports/object-store.ts";

/** Names of files that are being written; a listing never shows them. */
const temporaryMark = ".cnpg-ts-part";
let counter = 0;

/** An archive in a folder of this machine, for tests, air-gapped copies and network file systems. */
export function createFolderStore(options: { folder: string }): ObjectStore {
  const root = resolve(options.folder);
  const location = `file://${root}`;
  const pathOf = (key: string) => {
    const path = resolve(root, key);
    if (key === "" || key.endsWith("/") || !path.startsWith(`${root}${sep}`)) {
      throw new ObjectStoreError(`${location}: ${JSON.stringify(key)} is no key of an object`, {
        kind: "invalid",
        operation: "PATH",
        key,
      });
    }
    return path;
  };
  const guard = async <T>(operation: string, key: string, run: () => Promise<T>): Promise<T> => {
    try {
      return await run();
    } catch (error) {
      throw await toError(error, operation, key, root);
    }
  };

  const putStream: ObjectStore["putStream"] = (key, body, put = {}) =>
    guard("PUT", key, async () => {
      const path = pathOf(key);
      await fs.mkdir(dirname(path), { recursive: true });
      counter += 1;
      const temporary = `${path}${temporaryMark}.${process.pid}.${counter}`;
      try {
        const result = await writeFile(temporary, body, put.signal);
        // A link fails where a rename would replace.
        if (put.ifAbsent) await fs.link(temporary, path);
        else await fs.rename(temporary, path);
        await syncFolder(dirname(path));
        return result;
      } finally {
        await fs.rm(temporary, { force: true });
      }
    });

  return {
    location,
    conditionalCreate: true,
    put: (key, body, put) => putStream(key, iterate(body), put),
    putStream,
    get: (key, { from = 0, signal } = {}) =>
      guard("GET", key, async () => {
        const file = await fs.open(pathOf(key), constants.O_RDONLY);
        const stat = await file.stat();
        const info = { key, size: stat.size - from, modifiedMs: Math.floor(stat.mtimeMs), metadata: {} };
        const stream = file.createReadStream({
          start: from,
          highWaterMark: 1 << 20,
          ...(signal === undefined ? {} : { signal }),
        });
        stream.on("error", () => undefined);
        return { info, chunks: stream as AsyncIterable<Uint8Array>, cancel: () => stream.destroy() };
      }),
    head: (key) =>
      guard("HEAD", key, async () => {
        const stat = await fs.stat(pathOf(key)).catch(undefinedIfMissing);
        if (stat?.isFile()) return { key, size: stat.size, modifiedMs: Math.floor(stat.mtimeMs), metadata: {} };
        await fs.stat(root);
        return undefined;
      }),
    list: (prefix, list = {}) => listFolder(root, prefix, list),
    remove: (keys) =>
      guard("DELETE", keys[0] ?? "", async () => {
        for (const key of keys) await fs.rm(pathOf(key), { force: true });
      }),
    checkBucket: ({ create = false } = {}) =>
      guard("CHECK", "", async () => {
        if (await fs.stat(root).catch(undefinedIfMissing)) return "present";
        if (!create) return "missing";
        await fs.mkdir(root, { recursive: true });
        return "created";
      }),
    abortStaleUploads: (prefix, olderThanMs) => removeTemporaries(root, prefix, olderThanMs),
    close: () => undefined,
  };
}

async function writeFile(path: string, body: AsyncIterable<Uint8Array>, signal?: AbortSignal) {
  const hash = createHash("md5");
  let size = 0;
  const file = await fs.open(path, "wx", 0o640);
  try {
    for await (const chunk of body) {
      signal?.throwIfAborted();
      hash.update(chunk);
      await file.appendFile(chunk);
      size += chunk.length;
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return { size, checksum: `md5:${hash.digest("hex")}` };
}

async function syncFolder(path: string): Promise<void> {
  const folder = await fs.open(path, constants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function* iterate(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function* listFolder(
  root: string,
  prefix: string,
  options: NonNullable<Parameters<ObjectStore["list"]>[1]>,
): AsyncGenerator<ObjectPage> {
  if (!(await fs.stat(root).catch(undefinedIfMissing))) throw await toError(missing(), "LIST", prefix, root);
  const limit = options.pageSize ?? 1000;
  let objects: ObjectInfo[] = [];
  let prefixes: string[] = [];
  let yielded = false;
  for await (const entry of walk(root, prefix, options)) {
    if (typeof entry === "string") prefixes.push(entry);
    else objects.push(entry);
    if (objects.length + prefixes.length < limit) continue;
    yield { objects, prefixes };
    yielded = true;
    objects = [];
    prefixes = [];
  }
  if (objects.length + prefixes.length > 0 || !yielded) yield { objects, prefixes };
}

/** Objects in the order of their keys, and prefixes as text. */
async function* walk(
  root: string,
  prefix: string,
  options: NonNullable<Parameters<ObjectStore["list"]>[1]>,
  folder = prefix.slice(0, prefix.lastIndexOf("/") + 1),
): AsyncGenerator<ObjectInfo | string> {
  options.signal?.throwIfAborted();
  const entries = await fs.readdir(join(root, folder), { withFileTypes: true }).catch(undefinedIfMissing);
  const named = (entries ?? [])
    .filter((entry) => entry.isDirectory() || entry.isFile())
    .map((entry) => ({ key: `${folder}${entry.name}${entry.isDirectory() ? "/" : ""}`, folder: entry.isDirectory() }))
    .filter((entry) => !entry.key.includes(temporaryMark))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const entry of named) {
    const inside = entry.key.startsWith(prefix);
    if (!inside && !(entry.folder && prefix.startsWith(entry.key))) continue;
    if (entry.folder && !(inside && options.delimiter)) yield* walk(root, prefix, options, entry.key);
    else if (options.startAfter !== undefined && entry.key <= options.startAfter) continue;
    else if (entry.folder) yield entry.key;
    else {
      const stat = await fs.stat(join(root, entry.key)).catch(undefinedIfMissing);
      if (stat) yield { key: entry.key, size: stat.size, modifiedMs: Math.floor(stat.mtimeMs) };
    }
  }
}

async function removeTemporaries(root: string, prefix: string, olderThanMs: number): Promise<number> {
  const folder = join(root, prefix.slice(0, prefix.lastIndexOf("/") + 1));
  const names = (await fs.readdir(folder, { recursive: true }).catch(undefinedIfMissing)) ?? [];
  let removed = 0;
  for (const name of names) {
    if (!name.includes(temporaryMark)) continue;
    const stat = await fs.stat(join(folder, name)).catch(undefinedIfMissing);
    if (!stat || stat.mtimeMs >= olderThanMs) continue;
    await fs.rm(join(folder, name), { force: true });
    removed += 1;
  }
  return removed;
}

function undefinedIfMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
  return undefined;
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

function missing(): NodeJS.ErrnoException {
  return Object.assign(new Error("no such folder"), { code: "ENOENT" });
}

/** A file that is missing below a folder that is there is not found; a missing folder (not mounted) says nothing of the file. */
async function toError(error: unknown, operation: string, key: string, root: string): Promise<unknown> {
  if (error instanceof ObjectStoreError) return error;
  const { code, name } = error as NodeJS.ErrnoException;
  if (name === "AbortError") return error;
  const present = await fs.stat(root).then(
    () => true,
    () => false,
  );
  const kind = isMissing(error)
    ? present
      ? "notFound"
      : "bucketMissing"
    : code === "EEXIST"
      ? "conflict"
      : code === "EACCES" || code === "EPERM"
        ? "denied"
        : "unavailable";
  const reason = error instanceof Error ? error.message : String(error);
  return new ObjectStoreError(`${operation} file://${root}/${key}: ${reason}`, { kind, operation, key, cause: error });
}
