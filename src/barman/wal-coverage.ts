import type { Lsn } from "../postgres/lsn.ts";
import type { TimelineSwitch } from "../postgres/timeline-history.ts";
import {
  formatHistoryName,
  formatWalSegment,
  nextWalSegment,
  parseWalSegment,
  type WalSegment,
  walSegmentOfLsn,
  walSegmentStart,
} from "../postgres/wal-name.ts";

/** A range of segments on one timeline, both ends included. */
export interface WalRange {
  from: WalSegment;
  to: WalSegment;
}

/** The segments of a range that are not there. Each name is tested: uploads out of order leave holes below the highest one. */
export function findMissingSegments(
  present: ReadonlySet<string>,
  range: WalRange,
  segmentBytes: number,
  limit = Number.POSITIVE_INFINITY,
): string[] {
  const missing: string[] = [];
  const end = walSegmentStart(range.to, segmentBytes);
  for (
    let segment: WalSegment | undefined = range.from;
    segment !== undefined && walSegmentStart(segment, segmentBytes) <= end && missing.length < limit;
    segment = nextWalSegment(segment, segmentBytes)
  ) {
    const name = formatWalSegment(segment);
    if (!present.has(name)) missing.push(name);
  }
  return missing;
}

/** The range a backup needs to become consistent; undefined while it has not ended. */
export function requiredRange(backup: { beginWal: string | null; endWal: string | null }): WalRange | undefined {
  const from = backup.beginWal === null ? undefined : parseWalSegment(backup.beginWal);
  const to = backup.endWal === null ? undefined : parseWalSegment(backup.endWal);
  return from && to && from.timeline === to.timeline ? { from, to } : undefined;
}

/** Last segment of the unbroken row that starts at one; undefined when not even that one is there. */
export function lastContiguousSegment(
  present: ReadonlySet<string>,
  from: WalSegment,
  segmentBytes: number,
): WalSegment | undefined {
  let last: WalSegment | undefined;
  for (
    let segment: WalSegment | undefined = from;
    segment !== undefined && present.has(formatWalSegment(segment));
    segment = nextWalSegment(segment, segmentBytes)
  ) {
    last = segment;
  }
  return last;
}

/** The ranges that recovery from a position to the end of a timeline reads, oldest timeline first; the last one is open. */
export function rangesAlong(
  history: readonly TimelineSwitch[],
  goal: number,
  start: { timeline: number; lsn: Lsn },
  segmentBytes: number,
): { closed: WalRange[]; open: WalSegment; histories: string[] } | undefined {
  const closed: WalRange[] = [];
  let timeline = start.timeline;
  let position = start.lsn;
  const steps = history.filter((step) => step.timeline >= start.timeline);
  if (goal !== start.timeline && steps[0]?.timeline !== start.timeline) return undefined;
  for (const [index, step] of steps.entries()) {
    if (step.switchPoint < position) return undefined;
    const from = walSegmentOfLsn(timeline, position, segmentBytes);
    // The segment of the switch itself is taken from the new timeline, which begins with a copy of its first part.
    const end = walSegmentOfLsn(timeline, step.switchPoint, segmentBytes);
    if (walSegmentStart(end, segmentBytes) > walSegmentStart(from, segmentBytes)) {
      closed.push({ from, to: walSegmentOfLsn(timeline, walSegmentStart(end, segmentBytes) - 1n, segmentBytes) });
    }
    timeline = steps[index + 1]?.timeline ?? goal;
    position = step.switchPoint;
  }
  const histories = [...steps.slice(1).map((step) => step.timeline), ...(steps.length > 0 ? [goal] : [])];
  return {
    closed,
    open: walSegmentOfLsn(timeline, position, segmentBytes),
    histories: histories.map(formatHistoryName),
  };
}

/** What an archive can replay from a position along a timeline's history. */
export interface Coverage {
  /** Names that are missing below the end, at most the asked number. */
  missing: string[];
  /** Last segment of the unbroken row on the goal timeline. */
  last: string | undefined;
}

/** Tests every segment that recovery reads; undefined when the start is not on the timeline's way. */
export function computeCoverage(
  present: ReadonlySet<string>,
  history: readonly TimelineSwitch[],
  goal: number,
  start: { timeline: number; lsn: Lsn },
  segmentBytes: number,
  limit = 100,
): Coverage | undefined {
  const way = rangesAlong(history, goal, start, segmentBytes);
  if (!way) return undefined;
  const missing = way.histories.filter((name) => !present.has(name));
  for (const range of way.closed) {
    missing.push(...findMissingSegments(present, range, segmentBytes, limit - missing.length));
  }
  const last = lastContiguousSegment(present, way.open, segmentBytes);
  const highest = highestSegment(present, goal, way.open, segmentBytes);
  if (highest)
    missing.push(
      ...findMissingSegments(present, { from: way.open, to: highest }, segmentBytes, limit - missing.length),
    );
  return { missing: missing.slice(0, limit), last: last && formatWalSegment(last) };
}

function highestSegment(
  present: ReadonlySet<string>,
  timeline: number,
  from: WalSegment,
  segmentBytes: number,
): WalSegment | undefined {
  let highest: WalSegment | undefined;
  for (const name of present) {
    const segment = parseWalSegment(name);
    if (segment?.timeline !== timeline) continue;
    const at = walSegmentStart(segment, segmentBytes);
    if (at < walSegmentStart(from, segmentBytes)) continue;
    if (!highest || at > walSegmentStart(highest, segmentBytes)) highest = segment;
  }
  return highest;
}
