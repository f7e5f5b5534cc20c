// LZ4 frames: independent blocks of 64 KiB, with a checksum of the whole content at the end.
import { ExactReader } from "./exact-reader.ts";
import { findMatches } from "./find-matches.ts";
import { gatherParts } from "./parts.ts";
import { XxHash32, xxHash32 } from "./xxhash32.ts";

const magic = 0x184d2204;
const blockBytes = 64 * 1024;
const storedFlag = 0x8000_0000;
/** The last bytes of a block are literals, and no repetition begins within these. */
const quietEnd = 12;
const blockSizes = [64 * 1024, 256 * 1024, 1024 * 1024, 4 * 1024 * 1024] as const;
const historyBytes = 64 * 1024;

/** Compresses a stream into one frame. */
export async function* lz4Compress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  // Version 1, independent blocks, checksum of the content; blocks of at most 64 KiB.
  const descriptor = Uint8Array.of(0b0110_0100, 0b0100_0000);
  const head = Buffer.alloc(7);
  head.writeUInt32LE(magic, 0);
  head.set(descriptor, 4);
  head[6] = (xxHash32(descriptor) >>> 8) & 0xff;
  yield head;
  const hash = new XxHash32();
  for await (const block of gatherParts(source, blockBytes)) {
    hash.update(block);
    yield frameBlock(block);
  }
  const end = Buffer.alloc(8);
  end.writeUInt32LE(hash.digest(), 4);
  yield end;
}

/** Decompresses all frames of a stream. */
export async function* lz4Decompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = new ExactReader(source);
  try {
    let frames = 0;
    for (;;) {
      const head = await reader.take(4);
      if (!head) break;
      const mark = Buffer.from(head).readUInt32LE();
      if (mark >>> 4 === 0x184d2a5) await reader.need(Buffer.from(await reader.need(4)).readUInt32LE());
      else if (mark !== magic) throw new Error("no LZ4 frame");
      else yield* readFrame(reader);
      frames += 1;
    }
    if (frames === 0) throw new Error("the stream is empty");
  } finally {
    await reader.close();
  }
}

function frameBlock(block: Uint8Array): Uint8Array {
  const out = Buffer.allocUnsafe(4 + block.length + Math.ceil(block.length / 255) + 64);
  const size = compressBlock(block, out.subarray(4));
  if (size < block.length) {
    out.writeUInt32LE(size, 0);
    return out.subarray(0, 4 + size);
  }
  out.writeUInt32LE((storedFlag | block.length) >>> 0, 0);
  out.set(block, 4);
  return out.subarray(0, 4 + block.length);
}

function compressBlock(block: Uint8Array, out: Uint8Array): number {
  let to = 0;
  const put = (literal: number, at: number, match: number) => {
    const literals = at - literal;
    out[to++] = (Math.min(literals, 15) << 4) | Math.min(match, 15);
    if (literals >= 15) to = putLength(out, to, literals - 15);
    copyFrom(block, literal, out, to, literals);
    to += literals;
  };
  const rest = findMatches(block, 65_535, quietEnd, (literal, at, offset, length) => {
    put(literal, at, length - 4);
    out[to++] = offset & 0xff;
    out[to++] = offset >>> 8;
    if (length - 4 >= 15) to = putLength(out, to, length - 4 - 15);
  });
  put(rest, block.length, 0);
  return to;
}

function putLength(out: Uint8Array, at: number, length: number): number {
  let to = at;
  let rest = length;
  for (; rest >= 255; rest -= 255) out[to++] = 255;
  out[to++] = rest;
  return to;
}

async function* readFrame(reader: ExactReader): AsyncGenerator<Uint8Array> {
  const [flags = 0, sizes = 0] = await reader.need(2);
  const mostBytes = blockSizes[((sizes >>> 4) & 7) - 4];
  if (flags >>> 6 !== 1 || mostBytes === undefined) throw new Error("an LZ4 frame of an unknown version");
  const [linked, blockSums, hasSize, contentSum] = [!(flags & 32), !!(flags & 16), !!(flags & 8), !!(flags & 4)];
  if (flags & 1) throw new Error("an LZ4 frame that needs a dictionary");
  const more = hasSize ? await reader.need(8) : new Uint8Array();
  const [sum] = await reader.need(1);
  if (sum !== ((xxHash32(Buffer.concat([Uint8Array.of(flags, sizes), more])) >>> 8) & 0xff)) {
    throw new Error("the header of an LZ4 frame is damaged");
  }
  const hash = new XxHash32();
  let history: Uint8Array = new Uint8Array();
  for (;;) {
    const size = Buffer.from(await reader.need(4)).readUInt32LE();
    if (size === 0) break;
    const data = await reader.need(size & 0x7fff_ffff);
    if (blockSums && Buffer.from(await reader.need(4)).readUInt32LE() !== xxHash32(data)) {
      throw new Error("a block of an LZ4 frame is damaged");
    }
    const block = size >>> 31 ? data : decompressBlock(data, mostBytes, history);
    if (contentSum) hash.update(block);
    if (linked) history = Buffer.concat([history, block]).subarray(-historyBytes);
    yield block;
  }
  if (contentSum && Buffer.from(await reader.need(4)).readUInt32LE() !== hash.digest()) {
    throw new Error("the content of an LZ4 frame is damaged");
  }
}

function decompressBlock(data: Uint8Array, mostBytes: number, history: Uint8Array): Uint8Array {
  const out = Buffer.allocUnsafe(history.length + mostBytes);
  out.set(history);
  let to = history.length;
  let at = 0;
  const length = (nibble: number) => {
    let total = nibble;
    for (let byte = nibble === 15 ? 255 : 0; byte === 255; total += byte) byte = data[at++] ?? 0;
    return total;
  };
  while (at < data.length) {
    const token = data[at++] ?? 0;
    const literals = length(token >>> 4);
    if (at + literals > data.length || to + literals > out.length) throw new Error("an LZ4 block is damaged");
    copyFrom(data, at, out, to, literals);
    to += literals;
    at += literals;
    if (at >= data.length) break;
    const offset = (data[at] ?? 0) | ((data[at + 1] ?? 0) << 8);
    at += 2;
    const match = length(token & 15) + 4;
    if (offset === 0 || offset > to || to + match > out.length) throw new Error("an LZ4 block is damaged");
    copyWithin(out, to, offset, match);
    to += match;
  }
  return out.subarray(history.length, to);
}

/** Bytes up to which a loop is faster than a call of the engine's own copy. */
const shortCopy = 48;

/** Copies between two arrays, of which most are asked for a few bytes. */
export function copyFrom(from: Uint8Array, at: number, out: Uint8Array, to: number, length: number): void {
  if (length > shortCopy) out.set(from.subarray(at, at + length), to);
  else for (let index = 0; index < length; index++) out[to + index] = from[at + index] as number;
}

/** A repetition may reach into itself: then the bytes come one after another. */
export function copyWithin(out: Uint8Array, to: number, offset: number, length: number): void {
  if (offset >= length && length > shortCopy) out.copyWithin(to, to - offset, to - offset + length);
  else for (let index = 0; index < length; index++) out[to + index] = out[to + index - offset] as number;
}
