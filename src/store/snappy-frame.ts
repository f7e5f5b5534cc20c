// Snappy's framing format: chunks of at most 64 KiB, each with a masked CRC-32C of its content.
import { BlockOutput } from "./block-output.ts";
import { copyFrom, copyWithin } from "./copy-bytes.ts";
import { crc32c } from "./crc32c.ts";
import { ExactReader } from "./exact-reader.ts";
import { findMatches, mostBlockBytes, viewOf } from "./find-matches.ts";
import { gatherParts } from "./parts.ts";

/** Bytes taken in at once; a multiple of a chunk's. */
const batchBytes = 512 * 1024;
const header = Buffer.from("ff060000734e61507059", "hex");
const largestChunk = 1 << 24;

/** Compresses a stream into one framed stream. */
export async function* snappyCompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield header;
  for await (const batch of gatherParts(source, batchBytes)) yield frameChunks(batch);
}

/** Decompresses a framed stream. */
export async function* snappyDecompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = new ExactReader(source);
  const out = new BlockOutput();
  let begun = false;
  try {
    for (;;) {
      const head = await reader.take(4);
      if (!head) break;
      const kind = head[0] ?? 0;
      const length = (head[1] ?? 0) | ((head[2] ?? 0) << 8) | ((head[3] ?? 0) << 16);
      const body = await reader.need(Math.min(length, largestChunk));
      if (kind === 0xff) begun = checkHeader(body);
      else if (!begun) throw new Error("no Snappy stream");
      else if (kind <= 1) {
        const full = out.reserve(mostBlockBytes);
        if (full) yield full;
        readChunk(kind, body, out);
      } else if (kind < 0x80) throw new Error("a chunk of a kind that cannot be passed over");
    }
    if (!begun) throw new Error("the stream is empty");
    const rest = out.rest();
    if (rest) yield rest;
  } finally {
    await reader.close();
  }
}

function checkHeader(body: Uint8Array): true {
  if (!header.subarray(4).equals(body)) throw new Error("no Snappy stream");
  return true;
}

function readChunk(kind: number, body: Uint8Array, out: BlockOutput): void {
  if (body.length < 4) throw new Error("a Snappy chunk is damaged");
  const sum = viewOf(body).getUint32(0, true);
  const begin = out.at;
  if (kind === 0) decompressBlock(body.subarray(4), out);
  else {
    if (body.length - 4 > mostBlockBytes) throw new Error("a Snappy block is too large");
    out.bytes.set(body.subarray(4), out.at);
    out.at += body.length - 4;
  }
  if (sum !== maskedCrc(out.bytes.subarray(begin, out.at))) throw new Error("a Snappy chunk is damaged");
}

function maskedCrc(content: Uint8Array): number {
  const crc = crc32c(content);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

function frameChunks(batch: Uint8Array): Uint8Array {
  const chunks = Math.ceil(batch.length / mostBlockBytes);
  const out = Buffer.allocUnsafeSlow(batch.length + chunks * (8 + 32 + mostBlockBytes / 6));
  let to = 0;
  for (let at = 0; at < batch.length; at += mostBlockBytes) {
    const block = batch.subarray(at, at + mostBlockBytes);
    let size = compressBlock(block, out.subarray(to + 8));
    // As the format's own library does: little gain is not worth the time of the reader.
    const worth = size < block.length - block.length / 8;
    if (!worth) {
      out.set(block, to + 8);
      size = block.length;
    }
    out.writeUInt32LE((((size + 4) << 8) | (worth ? 0 : 1)) >>> 0, to);
    out.writeUInt32LE(maskedCrc(block), to + 4);
    to += 8 + size;
  }
  return out.subarray(0, to);
}

function compressBlock(block: Uint8Array, out: Uint8Array): number {
  const [view, outView] = [viewOf(block), viewOf(out)];
  let to = 0;
  for (let rest = block.length; ; rest >>>= 7) {
    out[to++] = rest < 128 ? rest : (rest & 127) | 128;
    if (rest < 128) break;
  }
  const putLiterals = (from: number, end: number) => {
    const length = end - from;
    if (length === 0) return;
    const last = length - 1;
    if (last < 60) out[to++] = last << 2;
    else if (last < 256) {
      out[to++] = 60 << 2;
      out[to++] = last;
    } else {
      out[to++] = 61 << 2;
      out[to++] = last & 0xff;
      out[to++] = last >>> 8;
    }
    copyFrom(block, view, from, out, outView, to, length);
    to += length;
  };
  const rest = findMatches(block, 0, (literal, at, offset, length) => {
    putLiterals(literal, at);
    for (let left = length; left > 0; ) {
      const part = Math.min(left, 64);
      out[to++] = ((part - 1) << 2) | 2;
      out[to++] = offset & 0xff;
      out[to++] = offset >>> 8;
      left -= part;
    }
  });
  putLiterals(rest, block.length);
  return to;
}

function decompressBlock(data: Uint8Array, output: BlockOutput): void {
  let at = 0;
  let size = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = data[at++];
    if (byte === undefined || shift > 28) throw new Error("a Snappy block is damaged");
    size += (byte & 127) * 2 ** shift;
    if (byte < 128) break;
  }
  if (size > mostBlockBytes) throw new Error("a Snappy block is too large");
  const { bytes: out, view, at: begin } = output;
  const dataView = viewOf(data);
  const end = begin + size;
  let to = begin;
  const number = (bytes: number) => {
    let value = 0;
    for (let index = 0; index < bytes; index++) value |= (data[at++] ?? 0) << (8 * index);
    return value >>> 0;
  };
  while (at < data.length) {
    const tag = data[at++] as number;
    const kind = tag & 3;
    const small = tag >>> 2;
    if (kind === 0) {
      const length = (small < 60 ? small : number(small - 59)) + 1;
      if (at + length > data.length || to + length > end) throw new Error("a Snappy block is damaged");
      copyFrom(data, dataView, at, out, view, to, length);
      at += length;
      to += length;
      continue;
    }
    const length = kind === 1 ? (small & 7) + 4 : small + 1;
    const offset = kind === 1 ? ((tag >>> 5) << 8) | number(1) : number(kind === 2 ? 2 : 4);
    if (offset === 0 || offset > to - begin || to + length > end) throw new Error("a Snappy block is damaged");
    copyWithin(out, view, to, offset, length);
    to += length;
  }
  if (to !== end) throw new Error("a Snappy block is damaged");
  output.at = end;
}
