import { createHash } from "node:crypto";
import { splitCompressionSuffix } from "../barman/compression.ts";
import type { BulkFiles, BulkSource } from "../ports/bulk-files.ts";
import type { ObjectStore } from "../ports/object-store.ts";
import { decompress } from "../store/codecs.ts";

/** Bytes that are read at once where nothing else asks for a size. */
const pieceBytes = 4 * 1024 * 1024;

/** SHA-256 of what an object holds once it is decompressed, hexadecimal. */
export async function hashObject(store: ObjectStore, key: string, signal?: AbortSignal): Promise<string> {
  const { compression } = splitCompressionSuffix(key);
  const body = await store.get(key, signal === undefined ? {} : { signal });
  try {
    const hash = createHash("sha256");
    for await (const chunk of decompress(body.chunks, compression)) hash.update(chunk);
    return hash.digest("hex");
  } finally {
    body.cancel();
  }
}

/** SHA-256 of a file, hexadecimal. */
export async function hashFile(files: BulkFiles, path: string): Promise<string> {
  const source = await files.open(path);
  try {
    const hash = createHash("sha256");
    for await (const piece of readPieces(source, pieceBytes)) hash.update(piece);
    return hash.digest("hex");
  } finally {
    await source.close();
  }
}

/** The bytes of an open file in pieces, up to the size it had when it was opened. */
export async function* readPieces(source: BulkSource, bytes: number): AsyncGenerator<Uint8Array> {
  const { size } = source.state;
  for (let position = 0; position < size; ) {
    const piece = await source.read(position, Math.min(bytes, size - position));
    if (piece.length === 0) throw new Error(`the file ended at ${position} of ${size} bytes`);
    position += piece.length;
    yield piece;
  }
}
