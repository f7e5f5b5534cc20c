import type { TreeSink } from "../../ports/tree-files.ts";

/** Bytes that wait to be written at most, beside one chunk. */
const mostBytes = 4 * 1024 * 1024;
/** Files that are not closed yet at most: most of a cluster's files are small, and each costs several turns of its own. */
const mostFiles = 8;
/** Bytes of a file after which the disk is set to work, so that syncing in the end finds little left. */
const syncBytes = 32 * 1024 * 1024;

export interface WriteBehindOptions {
  /** Makes what is written of a file so far durable; absent where nothing need be. */
  sync?: (path: string) => Promise<void>;
}

/** Writes files while the one who reads their bytes goes on. The first failure is that of the next call. */
export class WriteBehind {
  readonly #sync: ((path: string) => Promise<void>) | undefined;
  readonly #running = new Set<Promise<void>>();
  #bytes = 0;
  #files = 0;
  #syncing = false;
  #failure: { error: unknown } | undefined;

  constructor(options: WriteBehindOptions = {}) {
    this.#sync = options.sync;
  }

  /** Takes a file's chunks over, each in its turn, and then closes it; resolves when there is room for the next file. */
  async file(path: string, sink: TreeSink, content: AsyncIterable<Uint8Array>, mtimeNs: bigint): Promise<void> {
    this.#files += 1;
    let unsynced = 0;
    let last: Promise<void> = Promise.resolve();
    try {
      for await (const chunk of content) {
        this.#bytes += chunk.length;
        last = this.#after(last, async () => {
          try {
            if (!this.#failure) await sink.write(chunk);
          } finally {
            this.#bytes -= chunk.length;
          }
        });
        unsynced += chunk.length;
        if (unsynced >= syncBytes && this.#startSync(path, last)) unsynced = 0;
        await this.#untilRoom();
      }
    } finally {
      void this.#after(last, () => {
        this.#files -= 1;
        return sink.close({ mtimeNs });
      });
    }
    await this.#untilRoom();
  }

  /** Resolves when nothing is being written any more; does not fail. */
  async settle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** As `settle`, but fails when something could not be written. */
  async finish(): Promise<void> {
    await this.settle();
    this.#check();
  }

  #after(before: Promise<void>, work: () => Promise<void>): Promise<void> {
    const running: Promise<void> = before
      .then(work)
      .catch((error: unknown) => {
        this.#failure ??= { error };
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** One at a time: it takes a thread that files are written with. */
  #startSync(path: string, written: Promise<void>): boolean {
    const sync = this.#sync;
    if (!sync || this.#syncing) return false;
    this.#syncing = true;
    void this.#after(written, () => sync(path)).then(() => {
      this.#syncing = false;
    });
    return true;
  }

  async #untilRoom(): Promise<void> {
    while (!this.#failure && (this.#bytes > mostBytes || this.#files >= mostFiles)) await Promise.race(this.#running);
    this.#check();
  }

  #check(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
