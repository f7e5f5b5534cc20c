import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import { type ObjectStore, ObjectStoreError } from "../../ports/object-store.ts";
import type { BackupArchive } from "./backup-archives.ts";

/** Failures in a row, without a byte in between, after which the object is given up. */
const mostFailures = 6;
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;

export interface BodyDeps {
  store: ObjectStore;
  clock: Clock;
  logger: Logger;
  signal: AbortSignal;
}

/** Bytes of an archive; where the connection breaks, it goes on from there instead of from the start. */
export async function* resumableBody(archive: BackupArchive, deps: BodyDeps): AsyncGenerator<Uint8Array> {
  let position = 0;
  let failures = 0;
  for (;;) {
    try {
      for await (const chunk of bodyFrom(archive, position, deps)) {
        position += chunk.length;
        failures = 0;
        yield chunk;
      }
      return;
    } catch (error) {
      failures += 1;
      const again = error instanceof ObjectStoreError && error.retryable && failures < mostFailures;
      if (!again || deps.signal.aborted) throw error;
      deps.logger.warning("the download of an archive broke off", { key: archive.key, position, err: error.message });
      await deps.clock.sleep(Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs), deps.signal);
    }
  }
}

async function* bodyFrom(archive: BackupArchive, position: number, deps: BodyDeps): AsyncGenerator<Uint8Array> {
  if (position > 0 && position >= archive.size) return;
  const options = { signal: deps.signal, ...(position === 0 ? {} : { from: position }) };
  const body = await deps.store.get(archive.key, options);
  try {
    if (body.info.size + position !== archive.size) {
      throw new ObjectStoreError(`GET ${deps.store.location}/${archive.key}: the object is no longer the one listed`, {
        kind: "invalid",
        operation: "GET",
        key: archive.key,
      });
    }
    yield* body.chunks;
  } finally {
    body.cancel();
  }
}
