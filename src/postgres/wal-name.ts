import type { Lsn } from "./lsn.ts";

/** Size of a segment when initdb was not told otherwise, in bytes. */
export const defaultWalSegmentBytes = 16 * 1024 * 1024;

/** What a file name in `pg_wal` stands for. */
export type WalFileName =
  | { kind: "segment"; timeline: number; log: number; segment: number }
  | { kind: "partial"; timeline: number; log: number; segment: number }
  | { kind: "backupLabel"; timeline: number; log: number; segment: number; offset: number }
  | { kind: "history"; timeline: number };

/** Numbers in the name of a segment file. */
export interface WalSegment {
  timeline: number;
  log: number;
  segment: number;
}

const segmentPattern = /^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})(?:\.(partial)|\.([0-9A-F]{8})\.backup)?$/;

/** Reads a WAL file name; `undefined` for any other name. */
export function parseWalFileName(name: string): WalFileName | undefined {
  const history = /^([0-9A-F]{8})\.history$/.exec(name);
  if (history) return { kind: "history", timeline: hex(history[1]) };
  const match = segmentPattern.exec(name);
  if (!match) return undefined;
  const numbers = { timeline: hex(match[1]), log: hex(match[2]), segment: hex(match[3]) };
  if (match[4]) return { kind: "partial", ...numbers };
  if (match[5]) return { kind: "backupLabel", ...numbers, offset: hex(match[5]) };
  return { kind: "segment", ...numbers };
}

/** Reads the name of a whole segment; `undefined` for history, label, partial and foreign names. */
export function parseWalSegment(name: string): WalSegment | undefined {
  const parsed = parseWalFileName(name);
  if (parsed?.kind !== "segment") return undefined;
  return { timeline: parsed.timeline, log: parsed.log, segment: parsed.segment };
}

/** Name of a segment file. */
export function formatWalSegment(segment: WalSegment): string {
  return [segment.timeline, segment.log, segment.segment].map(hex8).join("");
}

/** Segments that one log number counts: 256 for 16 MiB segments. */
export function segmentsPerLog(segmentBytes: number): number {
  return 0x1_0000_0000 / segmentBytes;
}

/** Whether the size is one PostgreSQL can be built with: a power of two from 1 MiB to 1 GiB. */
export function isWalSegmentSize(bytes: number): boolean {
  return Number.isInteger(bytes) && bytes >= 1 << 20 && bytes <= 1 << 30 && (bytes & (bytes - 1)) === 0;
}

/** The segment that follows on the same timeline; `undefined` after the very last one. */
export function nextWalSegment(current: WalSegment, segmentBytes = defaultWalSegmentBytes): WalSegment | undefined {
  if (current.segment + 1 < segmentsPerLog(segmentBytes)) return { ...current, segment: current.segment + 1 };
  return current.log < 0xffffffff ? { ...current, log: current.log + 1, segment: 0 } : undefined;
}

/** The segment before on the same timeline; `undefined` before the very first one. */
export function previousWalSegment(current: WalSegment, segmentBytes = defaultWalSegmentBytes): WalSegment | undefined {
  if (current.segment > 0) return { ...current, segment: current.segment - 1 };
  return current.log > 0 ? { ...current, log: current.log - 1, segment: segmentsPerLog(segmentBytes) - 1 } : undefined;
}

/** The segment that holds a position. */
export function walSegmentOfLsn(timeline: number, lsn: Lsn, segmentBytes = defaultWalSegmentBytes): WalSegment {
  return {
    timeline,
    log: Number(lsn >> 32n),
    segment: Math.floor(Number(lsn & 0xffffffffn) / segmentBytes),
  };
}

/** Position of a segment's first byte. */
export function walSegmentStart(segment: WalSegment, segmentBytes = defaultWalSegmentBytes): Lsn {
  return (BigInt(segment.log) << 32n) + BigInt(segment.segment) * BigInt(segmentBytes);
}

/** Position just after a segment's last byte. */
export function walSegmentEnd(segment: WalSegment, segmentBytes = defaultWalSegmentBytes): Lsn {
  return walSegmentStart(segment, segmentBytes) + BigInt(segmentBytes);
}

/** Name of the history file of a timeline. */
export function formatHistoryName(timeline: number): string {
  return `${hex8(timeline)}.history`;
}

function hex(text: string | undefined): number {
  return Number.parseInt(text ?? "", 16);
}

function hex8(value: number): string {
  return value.toString(16).toUpperCase().padStart(8, "0");
}
