// The archives of one folder, one after another, into the store: tar, compression, upload in parts. Memory is bounded by the
// parts under way, whatever the size of the folder.

import type { CompressionName } from "../../barman/compression.ts";
import type { ServerKeys } from "../../barman/object-keys.ts";
import type { UploadSizes } from "../../barman/upload-sizes.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ObjectStore, PutStreamOptions } from "../../ports/object-store.ts";
import { compressArchive } from "../../store/codecs.ts";
import { pace } from "./pace.ts";
import { type ArchiveCount, ItemQueue, tarBytes } from "./tar-bytes.ts";
import type { TarItem } from "./tar-items.ts";

/** Pieces compressed at once. */
const compressParallel = 4;

export interface ArchiveUpload {
  store: ObjectStore;
  clock: Clock;
  keys: ServerKeys;
  backupId: string;
  compression: CompressionName | undefined;
  compressionLevel: number | undefined;
  sizes: UploadSizes;
  maxBandwidthBytes: number | undefined;
  tags: Readonly<Record<string, string>>;
  again: NonNullable<PutStreamOptions["again"]>;
  signal: AbortSignal;
}

export interface UploadedArchives {
  archives: number;
  files: number;
  /** Bytes of the files. */
  bytes: number;
  storedBytes: number;
}

/** Uploads the items of one folder, `data` or a tablespace's OID; resolves when the store confirmed every archive. */
export async function uploadArchives(
  name: string,
  items: AsyncIterable<TarItem>,
  upload: ArchiveUpload,
): Promise<UploadedArchives> {
  const { keys, backupId, compression, sizes, store, tags, signal } = upload;
  // The store would call a failure of its source its own: not reached, worth another try.
  const source = new WatchedSource(items);
  const queue = new ItemQueue(source.items());
  const total: UploadedArchives = { archives: 0, files: 0, bytes: 0, storedBytes: 0 };
  try {
    do {
      let compressed = 0;
      const count: ArchiveCount = { files: 0, bytes: 0 };
      const tar = tarBytes(queue, () => compressed > sizes.archiveBytes, count);
      const options = { level: upload.compressionLevel, parallel: compressParallel };
      const stream = counted(compressArchive(tar, compression, options), (bytes) => {
        compressed += bytes;
      });
      const paced = upload.maxBandwidthBytes ? pace(stream, upload.maxBandwidthBytes, upload.clock, signal) : stream;
      const key = keys.tar(backupId, name, total.archives, compression);
      const { size } = await store.putStream(key, paced, {
        partBytes: sizes.partBytes,
        concurrency: sizes.concurrency,
        again: upload.again,
        tags,
        signal,
      });
      total.archives += 1;
      total.files += count.files;
      total.bytes += count.bytes;
      total.storedBytes += size;
    } while (!queue.ended);
    return total;
  } catch (error) {
    throw source.failure ?? error;
  } finally {
    await queue.close();
  }
}

class WatchedSource {
  failure: unknown;
  readonly #items: AsyncIterable<TarItem>;

  constructor(items: AsyncIterable<TarItem>) {
    this.#items = items;
  }

  async *items(): AsyncGenerator<TarItem> {
    try {
      yield* this.#items;
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }
}

async function* counted(stream: AsyncIterable<Uint8Array>, count: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) {
    count(chunk.length);
    yield chunk;
  }
}
