import type { Lsn } from "../postgres/lsn.ts";
import {
  formatWalSegment,
  nextWalSegment,
  parseWalSegment,
  walSegmentOfLsn,
  walSegmentStart,
} from "../postgres/wal-name.ts";
import { parseArchivedWal } from "./wal-names.ts";

/** The WAL without which a base backup does not become consistent. */
export interface NeededWal {
  beginTimeline: number;
  beginLsn: Lsn;
  endTimeline: number;
  /** Position after the last byte. */
  endLsn: Lsn;
  segmentBytes: number;
}

/** Names of all needed segments, each with the timelines on which it may be found. */
export function listNeededWal(needed: NeededWal): { name: string; alternatives: readonly string[]; last: boolean }[] {
  const { beginTimeline, endTimeline, segmentBytes } = needed;
  const from = walSegmentOfLsn(endTimeline, needed.beginLsn, segmentBytes);
  // The byte before the end: an end at the edge of a segment needs nothing of the next one.
  const lastByte = needed.endLsn > needed.beginLsn ? needed.endLsn - 1n : needed.beginLsn;
  const end = walSegmentStart(walSegmentOfLsn(endTimeline, lastByte, segmentBytes), segmentBytes);
  const list = [];
  for (
    let segment: typeof from | undefined = from;
    segment !== undefined && walSegmentStart(segment, segmentBytes) <= end;
    segment = nextWalSegment(segment, segmentBytes)
  ) {
    const alternatives = [];
    for (let timeline = endTimeline; timeline >= beginTimeline; timeline--) {
      alternatives.push(formatWalSegment({ ...segment, timeline }));
    }
    const name = formatWalSegment(segment);
    list.push({ name, alternatives, last: walSegmentStart(segment, segmentBytes) === end });
  }
  return list;
}

/** The needed segments that an archive with these objects does not hold; the last one may be there in part, as a promotion leaves it. */
export function findMissingWal(needed: NeededWal, objectNames: Iterable<string>): string[] {
  const present = new Set<string>();
  for (const objectName of objectNames) {
    const wal = parseArchivedWal(objectName);
    if (wal) present.add(wal.name);
  }
  return listNeededWal(needed)
    .filter(({ alternatives, last }) => {
      const names = last ? [...alternatives, ...alternatives.map((name) => `${name}.partial`)] : alternatives;
      return !names.some((name) => present.has(name));
    })
    .map(({ name }) => name);
}

/** What a finished backup needs, as its `backup.info` tells; `undefined` when it does not. */
export function neededWalOf(info: {
  beginXlog: Lsn | null;
  endXlog: Lsn | null;
  endWal: string | null;
  timeline: number | null;
  xlogSegmentSize: number;
}): NeededWal | undefined {
  const end = info.endWal === null ? undefined : parseWalSegment(info.endWal);
  if (info.beginXlog === null || info.endXlog === null || info.timeline === null || !end) return undefined;
  return {
    beginTimeline: info.timeline,
    beginLsn: info.beginXlog,
    endTimeline: end.timeline,
    endLsn: info.endXlog,
    segmentBytes: info.xlogSegmentSize,
  };
}
