// Gzip as one stream, made by several cores: pieces of one size are deflated on their own, and joined by flushes under one header
// and one checksum. Readers see an ordinary file of one member, which tools that stop after the first member need. The header's
// comment tells the size of the pieces, by which `gzip-pieces.ts` inflates several at once.
import { promisify } from "node:util";
import { constants, crc32, deflateRaw as deflateRawCallback } from "node:zlib";
import { chooseStrategy } from "./deflate-strategy.ts";
import { gatherParts } from "./parts.ts";

const deflateRaw = promisify(deflateRawCallback);

/** Bytes of a piece: so many that beginning anew costs less than a hundredth, so few that memory stays small. */
export const gzipPieceBytes = 512 * 1024;
/** What the header's comment begins with; the size of the pieces follows. */
export const gzipComment = "cnpg-ts pieces of ";

export interface GzipStreamOptions {
  /** 1 to 9. */
  level: number;
  /** Pieces compressed at once. */
  parallel: number;
}

/** Compresses a stream into one gzip member. */
export async function* gzipStream(
  source: AsyncIterable<Uint8Array>,
  options: GzipStreamOptions,
): AsyncGenerator<Uint8Array> {
  const running: Promise<Uint8Array>[] = [];
  let crc = 0;
  let size = 0;
  yield header(options.level);
  try {
    for await (const piece of gatherParts(source, gzipPieceBytes)) {
      crc = crc32(piece, crc);
      size += piece.length;
      const deflated = deflate(piece, options.level);
      // Awaited below, in order; until then a failure must not count as unhandled.
      deflated.catch(() => undefined);
      running.push(deflated);
      if (running.length >= Math.max(1, options.parallel)) yield await (running.shift() as Promise<Uint8Array>);
    }
    for (const deflated of running.splice(0)) yield await deflated;
  } finally {
    await Promise.allSettled(running);
  }
  const end = Buffer.alloc(10);
  // An empty block that says it is the last one.
  end.writeUInt16LE(0x0003, 0);
  end.writeUInt32LE(crc, 2);
  end.writeUInt32LE(size % 0x1_0000_0000, 6);
  yield end;
}

function header(level: number): Uint8Array {
  const hasComment = 16;
  const fixed = [0x1f, 0x8b, 8, hasComment, 0, 0, 0, 0, level >= 9 ? 2 : 0, 255];
  return Buffer.concat([Uint8Array.from(fixed), Buffer.from(`${gzipComment}${gzipPieceBytes}\0`)]);
}

async function deflate(piece: Uint8Array, level: number): Promise<Uint8Array> {
  const strategy = await chooseStrategy(piece, level);
  return deflateRaw(piece, { level, strategy, chunkSize: gzipPieceBytes, finishFlush: constants.Z_SYNC_FLUSH });
}
