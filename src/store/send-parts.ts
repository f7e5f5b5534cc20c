import type { PutStreamOptions } from "../ports/object-store.ts";
import { gatherParts, PartBuffers } from "./parts.ts";

/** A stream whose begin is at hand: as a whole when it fits into one part, else its first two parts and the rest. */
export type CutStream = { whole: Uint8Array } | { parts: PartQueue };

/** Cuts a stream into parts of that size, as far as it takes to know whether one is enough. */
export async function cutStream(source: AsyncIterable<Uint8Array>, partBytes: number): Promise<CutStream> {
  const buffers = new PartBuffers();
  const rest = gatherParts(source, partBytes, (bytes) => buffers.take(bytes))[Symbol.asyncIterator]();
  const begin: Uint8Array[] = [];
  while (begin.length < 2) {
    const part = await rest.next();
    if (part.done) return { whole: begin[0] ?? new Uint8Array() };
    begin.push(part.value);
  }
  return { parts: new PartQueue(begin, rest, buffers) };
}

/** Sends once, and again as long as somebody wants it. */
export async function sendPatiently<T>(send: () => Promise<T>, again: PutStreamOptions["again"]): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await send();
    } catch (error) {
      if (!(await again?.(error, failures))) throw error;
    }
  }
}

/** Parts that are taken out one by one: a part that is sent must not be kept in memory until the last one is. */
export class PartQueue {
  readonly #begin: Uint8Array[];
  readonly #rest: AsyncIterator<Uint8Array>;
  readonly #buffers: PartBuffers;

  constructor(begin: Uint8Array[], rest: AsyncIterator<Uint8Array>, buffers: PartBuffers) {
    this.#begin = begin;
    this.#rest = rest;
    this.#buffers = buffers;
  }

  async next(): Promise<Uint8Array | undefined> {
    const first = this.#begin.shift();
    if (first) return first;
    const next = await this.#rest.next();
    return next.done ? undefined : next.value;
  }

  /** For a part that nobody reads any more. */
  give(part: Uint8Array): void {
    this.#buffers.give(part);
  }

  /** Sends all parts, numbered from 1, some at once; fails with the first failure when no part is under way any more. */
  async sendAll(
    { concurrency = 2, again }: Pick<PutStreamOptions, "concurrency" | "again">,
    send: (number: number, part: Uint8Array) => Promise<void>,
  ): Promise<void> {
    const running = new Set<Promise<void>>();
    let failure: unknown;
    for (let number = 1; ; number++) {
      const part = await this.next();
      if (!part) break;
      const sent = sendPatiently(() => send(number, part), again).then(
        () => this.give(part),
        // What failed is not used again: a socket that is being closed may still read from it.
        (error: unknown) => {
          failure ??= error;
        },
      );
      running.add(sent);
      void sent.finally(() => running.delete(sent));
      if (running.size >= Math.max(1, concurrency)) await Promise.race(running);
      if (failure !== undefined) break;
    }
    await Promise.all(running);
    if (failure !== undefined) throw failure;
  }

  /** Lets the source end when not all of it is wanted. */
  async close(): Promise<void> {
    await this.#rest.return?.(undefined);
  }
}
