// Snappy's framing format: chunks of at most 64 KiB, each with a masked CRC-32C of its content.
import { crc32c } from "./crc32c.ts";
import { ExactReader } from "./exact-reader.ts";
import { findMatches } from "./find-matches.ts";
import { copyFrom, copyWithin } from "./lz4-frame.ts";
import { gatherParts } from "./parts.ts";

const chunkBytes = 64 * 1024;
const header = Buffer.from("ff060000734e61507059", "hex");
const largestChunk = 1 << 24;

/** Compresses a stream into one framed stream. */
export async function* snappyCompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield header;
  for await (const block of gatherParts(source, chunkBytes)) {
    const compressed = compressBlock(block);
    // As the format's own library does: little gain is not worth the time of the reader.
    const worth = compressed.length < block.length - block.length / 8;
    const body = worth ? compressed : block;
    const head = Buffer.alloc(8);
    head.writeUInt32LE(((body.length + 4) << 8) | (worth ? 0 : 1), 0);
    head.writeUInt32LE(maskedCrc(block), 4);
    yield head;
    yield body;
  }
}

/** Decompresses a framed stream. */
export async function* snappyDecompress(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = new ExactReader(source);
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
      else if (kind <= 1) yield readChunk(kind, body);
      else if (kind < 0x80) throw new Error("a chunk of a kind that cannot be passed over");
    }
    if (!begun) throw new Error("the stream is empty");
  } finally {
    await reader.close();
  }
}

function checkHeader(body: Uint8Array): true {
  if (!header.subarray(4).equals(body)) throw new Error("no Snappy stream");
  return true;
}

function readChunk(kind: number, body: Uint8Array): Uint8Array {
  const sum = Buffer.from(body.subarray(0, 4)).readUInt32LE();
  const content = kind === 1 ? body.subarray(4) : decompressBlock(body.subarray(4));
  if (sum !== maskedCrc(content)) throw new Error("a Snappy chunk is damaged");
  return content;
}

function maskedCrc(content: Uint8Array): number {
  const crc = crc32c(content);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

function compressBlock(block: Uint8Array): Uint8Array {
  const out = Buffer.allocUnsafe(32 + block.length + Math.ceil(block.length / 6));
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
    copyFrom(block, from, out, to, length);
    to += length;
  };
  const rest = findMatches(block, 65_535, 0, (literal, at, offset, length) => {
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
  return out.subarray(0, to);
}

function decompressBlock(data: Uint8Array): Uint8Array {
  let at = 0;
  let size = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = data[at++];
    if (byte === undefined || shift > 28) throw new Error("a Snappy block is damaged");
    size += (byte & 127) * 2 ** shift;
    if (byte < 128) break;
  }
  if (size > chunkBytes) throw new Error("a Snappy block is too large");
  const out = Buffer.allocUnsafe(size);
  let to = 0;
  const number = (bytes: number) => {
    let value = 0;
    for (let index = 0; index < bytes; index++) value += (data[at++] ?? 0) * 2 ** (8 * index);
    return value;
  };
  while (at < data.length) {
    const tag = data[at++] as number;
    const kind = tag & 3;
    const small = tag >>> 2;
    if (kind === 0) {
      const length = (small < 60 ? small : number(small - 59)) + 1;
      if (at + length > data.length || to + length > size) throw new Error("a Snappy block is damaged");
      copyFrom(data, at, out, to, length);
      at += length;
      to += length;
      continue;
    }
    const length = kind === 1 ? (small & 7) + 4 : small + 1;
    const offset = kind === 1 ? ((tag >>> 5) << 8) | number(1) : number(kind === 2 ? 2 : 4);
    if (offset === 0 || offset > to || to + length > size) throw new Error("a Snappy block is damaged");
    copyWithin(out, to, offset, length);
    to += length;
  }
  if (to !== size) throw new Error("a Snappy block is damaged");
  return out;
}
