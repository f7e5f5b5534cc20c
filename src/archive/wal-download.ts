import type { CompressionName } from "../barman/compression.ts";
import { compressionSuffix } from "../barman/compression.ts";
import type { ServerKeys } from "../barman/object-keys.ts";
import { checkSegmentBytes, walHeaderBytes } from "../barman/wal-header.ts";
import { rankRestoreCandidates } from "../barman/wal-names.ts";
import type { BulkFiles } from "../ports/bulk-files.ts";
import { listAll, type ObjectBody, type ObjectStore, ObjectStoreError } from "../ports/object-store.ts";
import { CorruptStreamError, decompress } from "../store/codecs.ts";

export interface DownloadDeps {
  store: ObjectStore;
  bulk: BulkFiles;
  keys: ServerKeys;
  /** Whether a partial segment may stand for one that is not there. @default true */
  partials?: boolean;
  signal: AbortSignal;
}

/** A file that was brought here. */
export interface DownloadedWal {
  key: string;
  bytes: number;
  compression: CompressionName | undefined;
}

/**
 * Brings one WAL file of an archive to a path, which shows it only complete and checked. `undefined` when the archive certainly
 * does not hold it. `guess` is the compression of the last one: with it, most files need no listing.
 */
export async function downloadWal(
  name: string,
  path: string,
  guess: { compression: CompressionName | undefined } | undefined,
  deps: DownloadDeps,
): Promise<DownloadedWal | undefined> {
  const found =
    (guess && (await open(deps, deps.keys.wal(name, guess.compression), guess.compression))) ??
    (await find(name, deps));
  if (!found) return undefined;
  const { key, compression, body } = found;
  try {
    const bytes = await deps.bulk.write(path, checked(name, decompress(body.chunks, compression)));
    return { key, bytes, compression };
  } finally {
    body.cancel();
  }
}

interface OpenWal {
  key: string;
  compression: CompressionName | undefined;
  body: ObjectBody;
}

async function find(name: string, deps: DownloadDeps): Promise<OpenWal | undefined> {
  const prefix = deps.keys.wal(name);
  const folder = prefix.slice(0, prefix.lastIndexOf("/") + 1);
  const { objects } = await listAll(deps.store, prefix, { signal: deps.signal });
  const [best] = rankRestoreCandidates(
    name,
    objects.map(({ key }) => key.slice(folder.length)),
    { partial: deps.partials ?? true },
  );
  if (!best) return undefined;
  return open(deps, `${folder}${best.objectName}`, best.wal.compression);
}

async function open(
  deps: DownloadDeps,
  key: string,
  compression: CompressionName | undefined,
): Promise<OpenWal | undefined> {
  try {
    return { key, compression, body: await deps.store.get(key, { signal: deps.signal }) };
  } catch (error) {
    if (error instanceof ObjectStoreError && error.kind === "notFound") return undefined;
    throw error;
  }
}

/** Passes the bytes on and fails at their end, before the file is shown, when they are not those of the name. */
async function* checked(name: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head = new Uint8Array();
  let size = 0;
  for await (const chunk of chunks) {
    if (head.length < walHeaderBytes) head = Buffer.concat([head, chunk.subarray(0, walHeaderBytes)]);
    size += chunk.length;
    yield chunk;
  }
  const wrong = checkSegmentBytes(name, size, head);
  if (wrong !== null) throw new CorruptStreamError(wrong);
}

/** Key under which a name is looked for first, for messages. */
export function expectedKey(keys: ServerKeys, name: string, compression: CompressionName | undefined): string {
  return `${keys.wal(name)}${compressionSuffix(compression)}`;
}
