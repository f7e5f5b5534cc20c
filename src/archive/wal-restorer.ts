// The restorer: gives PostgreSQL the WAL files it asks for, and fetches what it will ask for next while it replays.
import type { CompressionName } from "../barman/compression.ts";
import { choosePrefetch } from "../barman/look-ahead.ts";
import { WalEnds } from "../barman/wal-end.ts";
import { normalizeWalName } from "../barman/wal-names.ts";
import type { BulkFiles } from "../ports/bulk-files.ts";
import type { Clock, Random } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/logger.ts";
import type { ObjectStore } from "../ports/object-store.ts";
import { isWalSegmentSize, parseWalFileName, parseWalSegment } from "../postgres/wal-name.ts";
import { retry } from "../runtime/backoff.ts";
import type { ArchiveFailpoint } from "./failpoint.ts";
import { Lanes } from "./lanes.ts";
import { compileRestoreOptions, type RestoreOptions, type RestoreSettings } from "./restore-settings.ts";
import { type DownloadedWal, downloadWal } from "./wal-download.ts";
import { WalError } from "./wal-error.ts";

export interface RestorerDeps {
  store: ObjectStore;
  files: Files;
  bulk: BulkFiles;
  clock: Clock;
  random: Random;
  logger: Logger;
  failpoint?: ArchiveFailpoint;
}

export interface WalFetch {
  /** File name that PostgreSQL asks for. */
  name: string;
  /** Absolute path for it. */
  destination: string;
  /** Streaming can go on where the archive ends, so one request there is answered by `endOfWal`. @default false */
  streamingAvailable?: boolean;
  /** `rewind`: pg_rewind asks, backwards and once; nothing is fetched ahead and nothing fetched before is believed. @default recovery */
  mode?: "recovery" | "rewind";
}

/** How long a request goes on against a store that fails; its caller has a longer breath. */
const patience = { baseMs: 200, maxMs: 2000, jitter: 0.5, maxAttempts: 4, maxElapsedMs: 10_000 };

/** Restores WAL from one archive. Make a new one when options or credentials change; close the old one. */
export class WalRestorer {
  readonly #deps: RestorerDeps;
  readonly #settings: RestoreSettings;
  readonly #failpoint: ArchiveFailpoint;
  readonly #ends = new WalEnds();
  readonly #closing = new AbortController();
  readonly #lanes: Lanes;
  /** Names in the spool, complete. */
  readonly #spooled = new Set<string>();
  readonly #fetching = new Map<string, Promise<void>>();
  #guess: { compression: CompressionName | undefined } | undefined;
  #segmentBytes: number | undefined;
  #spool: Promise<void> | undefined;
  /** Counts changes of direction: what was fetched for an older one is thrown away. */
  #generation = 0;

  constructor(options: RestoreOptions, deps: RestorerDeps) {
    this.#deps = deps;
    this.#settings = compileRestoreOptions(options);
    this.#segmentBytes = this.#settings.segmentBytes;
    this.#failpoint = deps.failpoint ?? (() => undefined);
    this.#lanes = new Lanes(this.#settings.lanes);
  }

  /** Resolves when the file is at its destination; fails with a `WalError`, of kind `notFound` only when it is certainly absent. */
  async restore(request: WalFetch): Promise<void> {
    const { name } = request;
    const attempt = `cannot restore ${name}`;
    if (normalizeWalName(name) !== name) {
      throw new WalError("badName", `${attempt}: it is not the name of a WAL file`);
    }
    // Backup labels are for people; PostgreSQL never needs one, and Barman's tool never delivers one.
    if (parseWalFileName(name)?.kind === "backupLabel") throw absent(attempt, this.#deps.store, this.#settings, name);
    try {
      await this.#prepareSpool();
      if (request.mode === "rewind") await this.#startOver();
      const streaming = request.mode !== "rewind" && (request.streamingAvailable ?? false);
      if (streaming && this.#ends.take(name)) {
        throw new WalError("endOfWal", `${name} was not in the archive a moment ago; streaming may have it`);
      }
      await this.#deliver(request, streaming, attempt);
    } catch (error) {
      throw WalError.from(attempt, error);
    }
    await this.#failpoint("delivered", name);
  }

  /** Stops fetching ahead, waits for what runs, and empties the spool. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the restorer is being closed"));
    await Promise.allSettled(this.#fetching.values());
    await this.#startOver();
  }

  async #deliver(request: WalFetch, streaming: boolean, attempt: string): Promise<void> {
    const { name, destination } = request;
    const { clock, logger, store } = this.#deps;
    const startMs = clock.now();
    const startedAt = clock.monotonicMs();
    await this.#fetching.get(name)?.catch(() => undefined);
    if (!(await this.#fromSpool(name, destination))) {
      const fetched = await this.#download(name, destination);
      if (!fetched) throw absent(attempt, store, this.#settings, name);
      this.#learn(name, fetched);
    }
    this.#ends.seen(name);
    await this.#failpoint("downloaded", name);
    if (request.mode !== "rewind") this.#prefetch(name, streaming);
    logger.info("Restored WAL file", {
      walName: name,
      startTime: new Date(startMs).toISOString(),
      endTime: new Date(clock.now()).toISOString(),
      elapsedWalTime: (clock.monotonicMs() - startedAt) / 1000,
    });
  }

  async #fromSpool(name: string, destination: string): Promise<boolean> {
    if (!this.#spooled.delete(name)) return false;
    const path = this.#spoolPath(name);
    // A file that lost its bytes behind our back is none.
    if (((await this.#deps.bulk.stat(path))?.size ?? 0) === 0) return false;
    await this.#deps.bulk.move(path, destination);
    return true;
  }

  #download(name: string, path: string): Promise<DownloadedWal | undefined> {
    const { store, bulk, clock, random } = this.#deps;
    const { keys, partials } = this.#settings;
    const signal = this.#closing.signal;
    return retry(() => downloadWal(name, path, this.#guess, { store, bulk, keys, partials, signal }), {
      policy: patience,
      clock,
      random,
      signal,
      classify: (error) => ({ retryable: WalError.from("", error).kind === "unavailable" }),
    });
  }

  #learn(name: string, fetched: DownloadedWal): void {
    this.#guess = { compression: fetched.compression };
    if (parseWalSegment(name) && isWalSegmentSize(fetched.bytes)) this.#segmentBytes ??= fetched.bytes;
  }

  /** Fetches what follows, as far as it is neither here nor on its way; ends quietly where the archive does. */
  #prefetch(name: string, streaming: boolean): void {
    if (this.#segmentBytes === undefined || !parseWalSegment(name)) return;
    const wanted = choosePrefetch(name, this.#settings.prefetch, this.#segmentBytes);
    void this.#dropOthers(new Set(wanted));
    for (const next of wanted) {
      if (this.#spooled.has(next) || this.#fetching.has(next)) continue;
      const generation = this.#generation;
      const fetching = this.#lanes
        .run(() => this.#fetchAhead(next, generation, streaming))
        .finally(() => this.#fetching.delete(next));
      this.#fetching.set(next, fetching);
      // Its own request will meet the same failure again, and answer for it.
      fetching.catch((error: unknown) => {
        this.#deps.logger.debug("Could not fetch a WAL file ahead", { walName: next, error });
      });
    }
  }

  async #fetchAhead(name: string, generation: number, streaming: boolean): Promise<void> {
    this.#closing.signal.throwIfAborted();
    if (generation !== this.#generation) return;
    const { store, bulk } = this.#deps;
    const { keys, partials } = this.#settings;
    const signal = this.#closing.signal;
    const path = this.#spoolPath(name);
    const fetched = await downloadWal(name, path, this.#guess, { store, bulk, keys, partials, signal });
    if (generation !== this.#generation) {
      await this.#deps.files.remove(path);
      return;
    }
    if (!fetched) {
      if (streaming) this.#ends.note(name);
      return;
    }
    // A partial file stands for its segment only while recovery has nothing better, so it is fetched when asked for.
    if (fetched.key.includes(".partial")) {
      await this.#deps.files.remove(path);
      return;
    }
    await this.#failpoint("prefetched", name);
    this.#spooled.add(name);
  }

  /** Removes spooled segments that recovery has passed or left. */
  async #dropOthers(wanted: ReadonlySet<string>): Promise<void> {
    for (const name of [...this.#spooled]) {
      if (wanted.has(name)) continue;
      this.#spooled.delete(name);
      await this.#deps.files.remove(this.#spoolPath(name)).catch(() => undefined);
    }
  }

  async #startOver(): Promise<void> {
    this.#generation += 1;
    this.#ends.clear();
    await Promise.allSettled(this.#fetching.values());
    await this.#dropOthers(new Set());
  }

  /** What an earlier process left in the spool is thrown away: nobody knows how complete it is. */
  #prepareSpool(): Promise<void> {
    this.#spool ??= this.#emptySpool().catch((error: unknown) => {
      this.#spool = undefined;
      throw error;
    });
    return this.#spool;
  }

  async #emptySpool(): Promise<void> {
    const { files } = this.#deps;
    await files.makeDirectory(this.#settings.spoolFolder, 0o700);
    for (const file of await files.list(this.#settings.spoolFolder)) await files.remove(this.#spoolPath(file));
  }

  #spoolPath(name: string): string {
    return `${this.#settings.spoolFolder}/${name}`;
  }
}

function absent(attempt: string, store: ObjectStore, settings: RestoreSettings, name: string): WalError {
  return new WalError("notFound", `${attempt}: ${store.location}/${settings.keys.wal(name)} does not exist`);
}
