import { createHash } from "node:crypto";
import { parseWalFileName, walSegmentStart } from "../../src/postgres/wal-name.ts";

export const testSystemId = "7364512345678901234";

/** Bytes of noise; the rest of a larger segment repeats them, farther away than most formats look back. */
const noiseBytes = 1 << 20;

/** Bytes that look like the segment of that name: a true page header, then hexadecimal noise made from the seed. */
export function makeSegment(
  name: string,
  options: { segmentBytes?: number; seed?: string; systemId?: string } = {},
): Buffer {
  const { segmentBytes = 1 << 20, seed = "a", systemId = testSystemId } = options;
  const parsed = parseWalFileName(name);
  if (!parsed || parsed.kind === "history") throw new Error(`${name} is not the name of a segment`);
  const bytes = Buffer.alloc(segmentBytes);
  for (let at = 0, counter = 0; at < Math.min(segmentBytes, noiseBytes); at += 64, counter++) {
    bytes.write(createHash("sha256").update(`${seed}:${name}:${counter}`).digest("hex"), at, "latin1");
  }
  for (let at = noiseBytes; at < segmentBytes; at += noiseBytes) bytes.copy(bytes, at, 0, noiseBytes);
  bytes.writeUInt16LE(0xd113, 0);
  bytes.writeUInt16LE(0x0002, 2);
  bytes.writeUInt32LE(parsed.timeline, 4);
  bytes.writeBigUInt64LE(walSegmentStart(parsed, segmentBytes), 8);
  bytes.writeBigUInt64LE(0n, 16);
  bytes.writeBigUInt64LE(BigInt(systemId), 24);
  bytes.writeUInt32LE(segmentBytes, 32);
  bytes.writeUInt32LE(8192, 36);
  return bytes;
}
