import type { TimelineHistories } from "../barman/backup-choice.ts";
import { type BackupCatalog, buildCatalog, type CatalogEntry } from "../barman/catalog.ts";
import type { CompressionName } from "../barman/compression.ts";
import type { ServerKeys } from "../barman/object-keys.ts";
import { type ArchivedWal, parseArchivedWal } from "../barman/wal-names.ts";
import { listAll, type ObjectBody, type ObjectStore, ObjectStoreError } from "../ports/object-store.ts";
import { parseTimelineHistory, type TimelineSwitch } from "../postgres/timeline-history.ts";
import { decompress } from "../store/codecs.ts";
import { Lanes } from "./lanes.ts";

const requestsAtOnce = 8;
/** Text objects larger than this are none of ours. */
const mostTextBytes = 4 * 1024 * 1024;

/** Reads every backup of a server. Fails as a whole when the store fails: a part of a catalog would be taken for all of it. */
export async function readCatalog(store: ObjectStore, keys: ServerKeys, signal?: AbortSignal): Promise<BackupCatalog> {
  const options = signal === undefined ? {} : { signal };
  const { prefixes } = await listAll(store, keys.basePrefix, { delimiter: "/", ...options });
  const lanes = new Lanes(requestsAtOnce);
  const entries = prefixes.map((prefix) => {
    const id = prefix.slice(keys.basePrefix.length, -1);
    return lanes.run(() => readEntry(store, keys, id, signal));
  });
  return buildCatalog(await Promise.all(entries));
}

/** An object's text; `undefined` when it is certainly not there. */
export async function readText(store: ObjectStore, key: string, signal?: AbortSignal): Promise<string | undefined> {
  try {
    return await textOf(await store.get(key, signal === undefined ? {} : { signal }), undefined);
  } catch (error) {
    if (error instanceof ObjectStoreError && error.kind === "notFound") return undefined;
    throw error;
  }
}

/** A WAL object and the file it holds. */
export interface WalObject {
  key: string;
  wal: ArchivedWal;
}

/** Every WAL object of a server, history files included, in the order of the keys. */
export async function* listWalObjects(
  store: ObjectStore,
  keys: ServerKeys,
  options: { prefix?: string; signal?: AbortSignal } = {},
): AsyncGenerator<WalObject> {
  const { prefix = keys.walsPrefix, signal } = options;
  for await (const page of store.list(prefix, signal === undefined ? {} : { signal })) {
    for (const { key } of page.objects) {
      const wal = parseArchivedWal(key.slice(key.lastIndexOf("/") + 1));
      if (wal) yield { key, wal };
    }
  }
}

/** Reads all history files of a server. */
export async function readHistories(
  store: ObjectStore,
  keys: ServerKeys,
  signal?: AbortSignal,
): Promise<TimelineHistories> {
  const { objects } = await listAll(store, keys.walsPrefix, {
    delimiter: "/",
    ...(signal === undefined ? {} : { signal }),
  });
  const histories = new Map<number, readonly TimelineSwitch[]>();
  for (const { key } of objects) {
    const wal = parseArchivedWal(key.slice(keys.walsPrefix.length));
    if (wal?.kind !== "history") continue;
    const body = await store.get(key, signal === undefined ? {} : { signal });
    const parsed = parseTimelineHistory(await textOf(body, wal.compression));
    if (!parsed) throw new Error(`${store.location}/${key} is not a timeline history`);
    histories.set(wal.timeline, parsed);
  }
  return histories;
}

/** First and last WAL segment of a server; looks into two folders only, however large the archive is. */
export async function readWalRange(
  store: ObjectStore,
  keys: ServerKeys,
  signal?: AbortSignal,
): Promise<{ first: string; last: string } | undefined> {
  const options = signal === undefined ? {} : { signal };
  const { prefixes } = await listAll(store, keys.walsPrefix, { delimiter: "/", ...options });
  const folders = [...prefixes].sort();
  const first = await firstNamed(store, keys, folders, signal, "first");
  const last = first === undefined ? undefined : await firstNamed(store, keys, folders.reverse(), signal, "last");
  return first === undefined || last === undefined ? undefined : { first, last };
}

async function firstNamed(
  store: ObjectStore,
  keys: ServerKeys,
  folders: readonly string[],
  signal: AbortSignal | undefined,
  end: "first" | "last",
): Promise<string | undefined> {
  for (const prefix of folders) {
    const names: string[] = [];
    const options = signal === undefined ? { prefix } : { prefix, signal };
    for await (const { wal } of listWalObjects(store, keys, options)) {
      if (wal.kind === "segment") names.push(wal.name);
    }
    names.sort();
    const found = end === "first" ? names[0] : names.at(-1);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function readEntry(
  store: ObjectStore,
  keys: ServerKeys,
  id: string,
  signal: AbortSignal | undefined,
): Promise<CatalogEntry> {
  const backupInfo = await readText(store, keys.backupInfo(id), signal);
  if (backupInfo === undefined) return { id, backupInfo };
  for (const key of keys.keepSpellings(id)) {
    const keep = await readText(store, key, signal);
    if (keep !== undefined) return { id, backupInfo, keep };
  }
  return { id, backupInfo };
}

async function textOf(body: ObjectBody, compression: CompressionName | undefined): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of decompress(body.chunks, compression)) {
      parts.push(chunk);
      size += chunk.length;
      if (size > mostTextBytes) throw new Error(`${body.info.key} has more than ${mostTextBytes} bytes of text`);
    }
  } finally {
    body.cancel();
  }
  return Buffer.concat(parts).toString("utf8");
}
