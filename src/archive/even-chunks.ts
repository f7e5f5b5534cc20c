import { gatherParts } from "../store/parts.ts";

/** What a decoder is handed at once: each call of it costs a turn through the thread pool, and sockets give a quarter of this. */
const chunkBytes = 256 * 1024;

/** Joins the small chunks of a download. */
export function evenChunks(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return gatherParts(chunks, chunkBytes);
}
