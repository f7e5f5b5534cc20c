// Reads what `gzip-stream.ts` has made with several cores: cuts the compressed bytes behind the marks of their flushes and
// inflates the pieces between them side by side. A mark may also occur by chance inside of a piece; then the piece comes out
// short or not at all, and is inflated once more across the cut. Size and checksum of the whole are compared at the end.
import { once } from "node:events";
import { promisify } from "node:util";
import { crc32, createInflateRaw, inflateRaw as inflateRawCallback } from "node:zlib";
import { gzipComment } from "./gzip-stream.ts";

const inflateRaw = promisify(inflateRawCallback);
const mark = Buffer.from([0x00, 0x00, 0xff, 0xff]);
/** An empty last block, the checksum, the size. */
const trailerBytes = 10;
const lastBlock = Uint8Array.of(0x03, 0x00);
const fixedHeaderBytes = 10;
const mostHeadBytes = fixedHeaderBytes + gzipComment.length + 12;
const mostPieceBytes = 8 * 1024 * 1024;

/** Decompresses a gzip stream: several pieces at once when it is made of such, otherwise by `whole`. */
export async function* gunzipPieces(
  source: AsyncIterable<Uint8Array>,
  parallel: number,
  whole: (source: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]();
  try {
    let head = Buffer.alloc(0);
    while (head.length < mostHeadBytes) {
      const next = await chunks.next();
      if (next.done) break;
      head = Buffer.concat([head, next.value]);
    }
    const found = readHeader(head);
    if (!found) return yield* whole(following(head, chunks));
    yield* new PieceReader(following(head.subarray(found.headBytes), chunks), found.pieceBytes, parallel).read();
  } finally {
    await chunks.return?.(undefined);
  }
}

function readHeader(head: Buffer): { headBytes: number; pieceBytes: number } | undefined {
  const end = head.indexOf(0, fixedHeaderBytes);
  if (head[0] !== 0x1f || head[1] !== 0x8b || head[2] !== 8 || head[3] !== 16 || end < 0) return undefined;
  const comment = head.toString("latin1", fixedHeaderBytes, end);
  if (!comment.startsWith(gzipComment)) return undefined;
  const pieceBytes = Number(comment.slice(gzipComment.length));
  if (!Number.isInteger(pieceBytes) || pieceBytes < 1 || pieceBytes > mostPieceBytes) return undefined;
  return { headBytes: end + 1, pieceBytes };
}

async function* following(head: Uint8Array, chunks: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  if (head.length > 0) yield head;
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
}

/** Compressed bytes up to a mark, and what they are when they are a whole piece. */
interface Cut {
  bytes: Uint8Array;
  inflated: Promise<Uint8Array | undefined>;
}

class PieceReader {
  readonly #cuts: AsyncGenerator<Uint8Array, Buffer>;
  readonly #pieceBytes: number;
  readonly #parallel: number;
  readonly #queue: Cut[] = [];
  #trailer: Buffer | undefined;

  constructor(source: AsyncIterable<Uint8Array>, pieceBytes: number, parallel: number) {
    this.#cuts = cutAtMarks(source, pieceBytes);
    this.#pieceBytes = pieceBytes;
    this.#parallel = Math.max(1, parallel);
  }

  async *read(): AsyncGenerator<Uint8Array> {
    let crc = 0;
    let size = 0;
    try {
      for (;;) {
        while (this.#queue.length < this.#parallel && (await this.#cutOne()));
        const cut = this.#queue.shift();
        if (!cut) break;
        const piece = await this.#piece(cut);
        crc = crc32(piece, crc);
        size += piece.length;
        yield piece;
      }
    } finally {
      await Promise.all(this.#queue.map(({ inflated }) => inflated));
      await this.#cuts.return(Buffer.alloc(0));
    }
    const trailer = this.#trailer ?? Buffer.alloc(0);
    const whole = trailer.length === trailerBytes && trailer.readUInt16LE(0) === 0x0003;
    if (!whole) throw new Error("the stream ends early");
    if (trailer.readUInt32LE(2) !== crc) throw new Error("the checksum is not that of the bytes");
    if (trailer.readUInt32LE(6) !== size % 0x1_0000_0000) throw new Error("the size is not that of the bytes");
  }

  /** False at the end. */
  async #cutOne(): Promise<boolean> {
    if (this.#trailer) return false;
    const next = await this.#cuts.next();
    if (next.done) {
      this.#trailer = next.value;
      return false;
    }
    const bytes = next.value.subarray(0, -lastBlock.length);
    this.#queue.push({ bytes, inflated: inflate(next.value, this.#pieceBytes) });
    return true;
  }

  async #piece({ bytes, inflated }: Cut): Promise<Uint8Array> {
    const piece = await inflated;
    if (piece?.length === this.#pieceBytes) return piece;
    // Only the last one may be shorter.
    const last = this.#queue.length === 0 && !(await this.#cutOne());
    if (piece && last) return piece;
    return this.#across(bytes);
  }

  /** Inflates one piece out of as many cuts as it takes. */
  async #across(first: Uint8Array): Promise<Uint8Array> {
    const inflater = createInflateRaw({ chunkSize: this.#pieceBytes });
    const parts: Uint8Array[] = [];
    let size = 0;
    inflater.on("data", (part: Uint8Array) => {
      parts.push(part);
      size += part.length;
    });
    const failed = once(inflater, "error").then(([error]) => Promise.reject(error as Error));
    failed.catch(() => undefined);
    try {
      for (let bytes: Uint8Array | undefined = first; bytes && size < this.#pieceBytes; ) {
        const given = bytes;
        await Promise.race([new Promise<void>((resolve) => inflater.write(given, () => resolve())), failed]);
        if (size >= this.#pieceBytes) break;
        if (this.#queue.length === 0) await this.#cutOne();
        bytes = this.#queue.shift()?.bytes;
      }
    } finally {
      inflater.destroy();
    }
    if (size > this.#pieceBytes) throw new Error("a piece is larger than the header tells");
    return Buffer.concat(parts);
  }
}

/** Yields the bytes up to each mark, the mark included, and behind them an empty last block; returns what follows the last mark. */
async function* cutAtMarks(source: AsyncIterable<Uint8Array>, pieceBytes: number): AsyncGenerator<Uint8Array, Buffer> {
  // Bytes that do not compress are stored, with a few more for each block.
  const held = Buffer.allocUnsafeSlow(pieceBytes + (pieceBytes >>> 6) + 1024);
  let filled = 0;
  let scanned = 0;
  for await (const chunk of source) {
    for (let at = 0; at < chunk.length; ) {
      const taken = Math.min(chunk.length - at, held.length - filled);
      if (taken === 0) throw new Error("a piece is larger than the header tells");
      held.set(chunk.subarray(at, at + taken), filled);
      at += taken;
      filled += taken;
      for (;;) {
        // Whatever the checksum's bytes are, they are no mark.
        const end = Math.max(0, filled - trailerBytes);
        const found = held.subarray(0, end).indexOf(mark, scanned);
        if (found < 0) {
          scanned = Math.max(0, end - mark.length + 1);
          break;
        }
        const cut = found + mark.length;
        const closed = Buffer.allocUnsafeSlow(cut + lastBlock.length);
        held.copy(closed, 0, 0, cut);
        closed.set(lastBlock, cut);
        yield closed;
        held.copyWithin(0, cut, filled);
        filled -= cut;
        scanned = 0;
      }
    }
  }
  return Buffer.from(held.subarray(0, filled));
}

/** `undefined` when what ends with the last block is no whole piece. */
async function inflate(bytes: Uint8Array, pieceBytes: number): Promise<Uint8Array | undefined> {
  try {
    return await inflateRaw(bytes, {
      chunkSize: pieceBytes + 64,
      maxOutputLength: pieceBytes,
    });
  } catch {
    return undefined;
  }
}
