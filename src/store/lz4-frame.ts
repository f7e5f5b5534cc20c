// LZ4 frames: independent blocks of 64 KiB, with a checksum of the whole content at the end.
import { BlockOutput } from "./block-output.ts";
import { copyFrom, copyWithin } from "./copy-bytes.ts";
import { ExactReader } from "./exact-reader.ts";
import { findMatches, mostBlockBytes, viewOf } from "./find-matches.ts";
import { gatherParts } from "./parts.ts";
import { XxHash32, xxHash32 } from "./xxhash32.ts";

const magic = 0x184d2204;
/** Bytes taken in at once; a multiple of a block's. */
const batchBytes = 512 * 1024;
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
  for await (const batch of gatherParts(source, batchBytes)) {
    hash.update(batch);
    yield frameBlocks(batch);
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

function frameBlocks(batch: Uint8Array): Uint8Array {
  const blocks = Math.ceil(batch.length / mostBlockBytes);
  const out = Buffer.allocUnsafeSlow(batch.length + blocks * (4 + mostBlockBytes / 255 + 64));
  let to = 0;
  for (let at = 0; at < batch.length; at += mostBlockBytes) {
    const block = batch.subarray(at, at + mostBlockBytes);
    const size = compressBlock(block, out.subarray(to + 4));
    if (size < block.length) {
      out.writeUInt32LE(size, to);
      to += 4 + size;
    } else {
      out.writeUInt32LE((storedFlag | block.length) >>> 0, to);
      out.set(block, to + 4);
      to += 4 + block.length;
    }
  }
  return out.subarray(0, to);
}

function compressBlock(block: Uint8Array, out: Uint8Array): number {
  const [view, outView] = [viewOf(block), viewOf(out)];
  let to = 0;
  const put = (literal: number, at: number, match: number) => {
    const literals = at - literal;
    out[to++] = (Math.min(literals, 15) << 4) | Math.min(match, 15);
    if (literals >= 15) to = putLength(out, to, literals - 15);
    copyFrom(block, view, literal, out, outView, to, literals);
    to += literals;
  };
  const rest = findMatches(block, quietEnd, (literal, at, offset, length) => {
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
  const out = new BlockOutput(linked ? historyBytes : 0);
  for (;;) {
    const size = viewOf(await reader.need(4)).getUint32(0, true);
    if (size === 0) break;
    const data = await reader.need(size & 0x7fff_ffff);
    if (blockSums && viewOf(await reader.need(4)).getUint32(0, true) !== xxHash32(data)) {
      throw new Error("a block of an LZ4 frame is damaged");
    }
    const full = out.reserve(mostBytes);
    if (full) yield full;
    const begin = out.at;
    if (size >>> 31) putStored(data, out, mostBytes);
    else decompressBlock(data, out, mostBytes, linked);
    if (contentSum) hash.update(out.bytes.subarray(begin, out.at));
  }
  const rest = out.rest();
  if (rest) yield rest;
  if (contentSum && Buffer.from(await reader.need(4)).readUInt32LE() !== hash.digest()) {
    throw new Error("the content of an LZ4 frame is damaged");
  }
}

function putStored(data: Uint8Array, out: BlockOutput, mostBytes: number): void {
  if (data.length > mostBytes) throw new Error("an LZ4 block is damaged");
  out.bytes.set(data, out.at);
  out.at += data.length;
}

function decompressBlock(data: Uint8Array, output: BlockOutput, mostBytes: number, linked: boolean): void {
  const { bytes: out, view } = output;
  const dataView = viewOf(data);
  const begin = linked ? 0 : output.at;
  const end = output.at + mostBytes;
  let to = output.at;
  let at = 0;
  const length = (nibble: number) => {
    let total = nibble;
    for (let byte = nibble === 15 ? 255 : 0; byte === 255; total += byte) byte = data[at++] ?? 0;
    return total;
  };
  while (at < data.length) {
    const token = data[at++] as number;
    const literals = length(token >>> 4);
    if (at + literals > data.length || to + literals > end) throw new Error("an LZ4 block is damaged");
    copyFrom(data, dataView, at, out, view, to, literals);
    to += literals;
    at += literals;
    if (at >= data.length) break;
    const offset = (data[at] ?? 0) | ((data[at + 1] ?? 0) << 8);
    at += 2;
    const match = length(token & 15) + 4;
    if (offset === 0 || to - offset < begin || to + match > end) throw new Error("an LZ4 block is damaged");
    copyWithin(out, view, to, offset, match);
    to += match;
  }
  output.at = to;
}
