import { Readable, type Transform } from "node:stream";
import { promisify } from "node:util";
import { constants, createGunzip, createZstdCompress, createZstdDecompress, gzip as gzipCallback } from "node:zlib";
import { type CompressionName, compressions } from "../barman/compression.ts";
import { bzip2Compress } from "./bzip2-compress.ts";
import { bzip2Decompress } from "./bzip2-decompress.ts";
import { chooseStrategy } from "./deflate-strategy.ts";
import type { Effort } from "./effort.ts";
import { gunzipPieces } from "./gzip-pieces.ts";
import { gzipStream } from "./gzip-stream.ts";
import { lz4Compress, lz4Decompress } from "./lz4-frame.ts";
import { gatherParts } from "./parts.ts";
import { snappyCompress, snappyDecompress } from "./snappy-frame.ts";
import { xzCompress } from "./xz/xz-compress.ts";
import { xzDecompress } from "./xz/xz-decompress.ts";

const gzip = promisify(gzipCallback);
/** Few, large outputs: each one is a turn of the event loop. */
const outputBytes = 1 << 20;
/** What native decoders and files are given at once: each time is a turn through the thread pool, and sockets give a quarter. */
const inputBytes = 256 * 1024;
/** Pieces decompressed at once, where a stream is made of pieces: one thread of the pool is left to the files. */
const gunzipParallel = 3;

/** Thrown for bytes that are not what their name's suffix says. */
export class CorruptStreamError extends Error {
  override readonly name = "CorruptStreamError";
}

export interface CompressOptions extends Effort {
  /** Pieces compressed at once, where the format allows several streams in a row. @default 1 */
  parallel?: number | undefined;
  /** Total bytes to come, when known. */
  size?: number | undefined;
}

/** Compresses pieces of a WAL file. With gzip each piece becomes a member of its own, which readers of WAL files accept. */
export function compressWal(
  pieces: AsyncIterable<Uint8Array>,
  compression: CompressionName | undefined,
  options: CompressOptions = {},
): AsyncIterable<Uint8Array> {
  if (compression === undefined) return pieces;
  const level = options.level ?? compressions[compression].levels?.medium;
  switch (compression) {
    case "gzip":
      return gzipMembers(pieces, { ...options, level: level ?? constants.Z_DEFAULT_COMPRESSION });
    case "zstd":
      return through(pieces, zstdEncoder(level, options.size));
    case "bzip2":
      return bzip2Compress(pieces);
    case "lz4":
      return lz4Compress(pieces);
    case "snappy":
      return snappyCompress(pieces);
    case "xz":
      return xzCompress(pieces, level ?? 3);
  }
}

/** Compresses an archive into one stream, whatever the compression: some readers stop at the end of the first. */
export function compressArchive(
  pieces: AsyncIterable<Uint8Array>,
  compression: CompressionName | undefined,
  options: CompressOptions = {},
): AsyncIterable<Uint8Array> {
  if (compression !== "gzip") return compressWal(pieces, compression, options);
  const level = options.level ?? compressions.gzip.levels?.medium ?? constants.Z_DEFAULT_COMPRESSION;
  return gzipStream(pieces, { level, parallel: options.parallel ?? 1 });
}

/** Decompresses a stream of one compression; a stream that ends early or is damaged fails with `CorruptStreamError`. */
export function decompress(
  source: AsyncIterable<Uint8Array>,
  compression: CompressionName | undefined,
): AsyncIterable<Uint8Array> {
  switch (compression) {
    case undefined:
      return gatherParts(source, inputBytes);
    case "gzip":
      return guarded(source, (bytes) =>
        gunzipPieces(bytes, gunzipParallel, (whole) =>
          through(gatherParts(whole, inputBytes), createGunzip({ chunkSize: outputBytes })),
        ),
      );
    case "zstd":
      return through(gatherParts(source, inputBytes), createZstdDecompress({ chunkSize: outputBytes }));
    case "bzip2":
      return guarded(source, bzip2Decompress);
    case "lz4":
      return guarded(source, lz4Decompress);
    case "snappy":
      return guarded(source, snappyDecompress);
    case "xz":
      return guarded(source, xzDecompress);
  }
}

async function* gzipMembers(
  pieces: AsyncIterable<Uint8Array>,
  { level, strategy, parallel = 1 }: CompressOptions & { level: number },
): AsyncGenerator<Uint8Array> {
  const running: Promise<Buffer>[] = [];
  let any = false;
  try {
    for await (const piece of pieces) {
      any = true;
      // Only now: the next piece was read, and hashed by its reader, while the others were being compressed.
      if (running.length >= Math.max(1, parallel)) yield (await running.shift()) as Buffer;
      const member = gzipMember(piece, level, strategy);
      // Awaited in order; until then a failure must not count as unhandled.
      member.catch(() => undefined);
      running.push(member);
    }
    if (!any) running.push(gzip(new Uint8Array(), { level }));
    for (const member of running.splice(0)) yield await member;
  } finally {
    await Promise.allSettled(running);
  }
}

async function gzipMember(piece: Uint8Array, level: number, strategy: number | undefined): Promise<Buffer> {
  return gzip(piece, { level, strategy: strategy ?? (await chooseStrategy(piece, level)), chunkSize: outputBytes });
}

function zstdEncoder(level: number | undefined, size: number | undefined): Transform {
  return createZstdCompress({
    chunkSize: outputBytes,
    ...(size === undefined ? {} : { pledgedSrcSize: size }),
    params: {
      ...(level === undefined ? {} : { [constants.ZSTD_c_compressionLevel]: level }),
      [constants.ZSTD_c_checksumFlag]: 1,
    },
  });
}

/** Runs a decoder of our own: an error of the source comes out as it is, one of the decoder as corruption. */
async function* guarded(
  source: AsyncIterable<Uint8Array>,
  decode: (source: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let sourceError: unknown;
  const watched = (async function* () {
    try {
      yield* source;
    } catch (error) {
      sourceError = error;
      throw error;
    }
  })();
  try {
    yield* decode(watched);
  } catch (error) {
    if (sourceError !== undefined) throw sourceError;
    if (error instanceof CorruptStreamError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new CorruptStreamError(`damaged or cut off: ${reason}`, { cause: error });
  }
}

/** Pipes a source through a transform; an error of the source comes out as it is, one of the transform as corruption. */
async function* through(source: AsyncIterable<Uint8Array>, transform: Transform): AsyncGenerator<Uint8Array> {
  const input = Readable.from(source, { objectMode: false, highWaterMark: outputBytes });
  let sourceError: unknown;
  input.once("error", (error) => {
    sourceError = error;
    transform.destroy(error);
  });
  input.pipe(transform);
  try {
    for await (const chunk of transform) yield chunk as Uint8Array;
  } catch (error) {
    if (sourceError !== undefined) throw sourceError;
    const reason = error instanceof Error ? error.message : String(error);
    throw new CorruptStreamError(`damaged or cut off: ${reason}`, { cause: error });
  } finally {
    input.destroy();
    transform.destroy();
  }
}
