// Items become the bytes of one tar archive, in pieces of even size. A file that shrinks while it is read is filled up with
// zeros, one that grows is cut at the size its header tells: what is missing is in the WAL.
import { formatTarHeader, tarEnd, tarPadding } from "../../barman/tar-header.ts";
import { closeItem, type TarItem } from "./tar-items.ts";

/** Bytes read and handed on at once. */
export const pieceBytes = 512 * 1024;

/** Gives items one by one, each of which the taker closes; keeps one that was taken too early. */
export class ItemQueue {
  readonly #items: AsyncIterator<TarItem>;
  #returned: TarItem | undefined;
  #ended = false;

  constructor(items: AsyncIterable<TarItem>) {
    this.#items = items[Symbol.asyncIterator]();
  }

  get ended(): boolean {
    return this.#ended;
  }

  async take(): Promise<TarItem | undefined> {
    if (this.#returned) {
      const item = this.#returned;
      this.#returned = undefined;
      return item;
    }
    if (this.#ended) return undefined;
    const next = await this.#items.next();
    if (!next.done) return next.value;
    this.#ended = true;
    return undefined;
  }

  giveBack(item: TarItem): void {
    this.#returned = item;
  }

  async close(): Promise<void> {
    this.#ended = true;
    if (this.#returned) await closeItem(this.#returned);
    this.#returned = undefined;
    await this.#items.return?.(undefined);
  }
}

/** What one archive took. */
export interface ArchiveCount {
  files: number;
  bytes: number;
}

/** Bytes of one archive, from the queue until it is empty or `isFull` says that the next item belongs into another archive. */
export async function* tarBytes(
  queue: ItemQueue,
  isFull: () => boolean,
  count: ArchiveCount = { files: 0, bytes: 0 },
): AsyncGenerator<Uint8Array> {
  const writer = new PieceWriter();
  for (;;) {
    const item = await queue.take();
    if (!item) break;
    if (count.files > 0 && !item.joined && isFull()) {
      queue.giveBack(item);
      break;
    }
    count.files += 1;
    count.bytes += item.entry.size;
    try {
      yield* writer.put(formatTarHeader(item.entry));
      yield* writeContent(writer, item);
    } finally {
      await closeItem(item);
    }
  }
  yield* writer.put(tarEnd(writer.written));
  yield* writer.flush();
}

async function* writeContent(writer: PieceWriter, { entry, content }: TarItem): AsyncGenerator<Uint8Array> {
  if (content === undefined) return;
  if (content instanceof Uint8Array) yield* writer.put(content);
  else {
    for (let position = 0; position < entry.size; ) {
      const target = writer.room(entry.size - position);
      const read = await content.read(target, position);
      // Shorter than its header says: the file was cut off meanwhile.
      if (read < target.length) target.fill(0, read);
      position += target.length;
      yield* writer.advance(target.length);
    }
  }
  yield* writer.put(new Uint8Array(tarPadding(entry.size)));
}

class PieceWriter {
  written = 0;
  #piece = Buffer.allocUnsafeSlow(pieceBytes);
  #filled = 0;

  /** Where up to so many bytes may be written now; `advance` must follow. */
  room(length: number): Uint8Array {
    return this.#piece.subarray(this.#filled, Math.min(pieceBytes, this.#filled + length));
  }

  *advance(length: number): Generator<Uint8Array> {
    this.#filled += length;
    this.written += length;
    if (this.#filled < pieceBytes) return;
    const full = this.#piece;
    this.#piece = Buffer.allocUnsafeSlow(pieceBytes);
    this.#filled = 0;
    yield full;
  }

  *put(bytes: Uint8Array): Generator<Uint8Array> {
    for (let at = 0; at < bytes.length; ) {
      const room = this.room(bytes.length - at);
      room.set(bytes.subarray(at, at + room.length));
      at += room.length;
      yield* this.advance(room.length);
    }
  }

  *flush(): Generator<Uint8Array> {
    if (this.#filled > 0) yield this.#piece.subarray(0, this.#filled);
    this.#filled = 0;
  }
}
