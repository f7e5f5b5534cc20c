// Gzip as one stream, made by several cores: pieces are deflated on their own, each with the end of the piece before as its
// dictionary, and joined by sync flushes under one header and one checksum. Readers see an ordinary file of one member, which
// tools that stop after the first member need.
import { promisify } from "node:util";
import { constants, crc32, deflateRaw as deflateRawCallback } from "node:zlib";

const deflateRaw = promisify(deflateRawCallback);
const dictionaryBytes = 32 * 1024;
const outputBytes = 256 * 1024;

export interface GzipStreamOptions {
  /** 1 to 9. */
  level: number;
  /** Pieces compressed at once. */
  parallel: number;
}

/** Compresses pieces, best of some 100 KiB each, into one gzip member. */
export async function* gzipStream(
  pieces: AsyncIterable<Uint8Array>,
  options: GzipStreamOptions,
): AsyncGenerator<Uint8Array> {
  const running: Promise<Uint8Array>[] = [];
  let crc = 0;
  let size = 0;
  let dictionary: Uint8Array = new Uint8Array();
  yield Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, options.level >= 9 ? 2 : 0, 255);
  try {
    for await (const piece of pieces) {
      if (piece.length === 0) continue;
      crc = crc32(piece, crc);
      size += piece.length;
      const deflated = deflate(piece, dictionary, options.level);
      // Awaited below, in order; until then a failure must not count as unhandled.
      deflated.catch(() => undefined);
      running.push(deflated);
      // A copy: the piece itself may be written to as soon as it is compressed.
      dictionary = lastBytes(dictionary, piece);
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

function deflate(piece: Uint8Array, dictionary: Uint8Array, level: number): Promise<Uint8Array> {
  return deflateRaw(piece, {
    level,
    chunkSize: outputBytes,
    finishFlush: constants.Z_SYNC_FLUSH,
    ...(dictionary.length === 0 ? {} : { dictionary }),
  });
}

function lastBytes(before: Uint8Array, piece: Uint8Array): Uint8Array {
  if (piece.length >= dictionaryBytes) return Uint8Array.from(piece.subarray(-dictionaryBytes));
  return Buffer.concat([before.subarray(Math.max(0, before.length + piece.length - dictionaryBytes)), piece]);
}
