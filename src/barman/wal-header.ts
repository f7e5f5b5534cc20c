import { isWalSegmentSize, parseWalSegment, walSegmentStart } from "../postgres/wal-name.ts";

/** What the first page of a segment says about itself. */
export interface WalSegmentHeader {
  timeline: number;
  /** Position of the segment's first byte. */
  pageAddress: bigint;
  /** System identifier, decimal. */
  systemId: string;
  segmentBytes: number;
}

/** Bytes that a header needs. */
export const walHeaderBytes = 40;
const longHeaderFlag = 0x0002;

/** Reads the long page header at the start of a segment, little-endian as every platform of ours; undefined when there is none. */
export function parseWalHeader(head: Uint8Array): WalSegmentHeader | undefined {
  if (head.length < walHeaderBytes) return undefined;
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  // Every version's magic number since 9.6 begins with 0xD0 or 0xD1.
  const magic = view.getUint16(0, true) >> 8;
  const segmentBytes = view.getUint32(32, true);
  if (magic < 0xd0 || magic > 0xd1 || (view.getUint16(2, true) & longHeaderFlag) === 0) return undefined;
  if (!isWalSegmentSize(segmentBytes)) return undefined;
  return {
    timeline: view.getUint32(4, true),
    pageAddress: view.getBigUint64(8, true),
    systemId: view.getBigUint64(24, true).toString(),
    segmentBytes,
  };
}

/**
 * Why bytes cannot be the segment of that name; null when they can, and for names other than a segment's. Bytes without a
 * page header are passed: what they are is for PostgreSQL to judge.
 */
export function checkSegmentBytes(name: string, size: number, head: Uint8Array): string | null {
  if (size === 0) return `${name} is empty`;
  const segment = parseWalSegment(name.replace(/\.partial$/, ""));
  const header = segment ? parseWalHeader(head) : undefined;
  if (!segment || !header) return null;
  if (header.segmentBytes !== size) return `${name} has ${size} bytes, its header says ${header.segmentBytes}`;
  if (header.pageAddress !== walSegmentStart(segment, size)) return `${name} holds another segment's bytes`;
  return null;
}
