import { compareLsn } from "../../postgres/lsn.ts";
import { parseWalSegment } from "../../postgres/wal-name.ts";

/** What the primary's `pg_stat_archiver` tells. Milliseconds since the epoch; `undefined` = never. */
export interface ArchiverFacts {
  lastArchivedWal: string;
  lastArchivedMs: number | undefined;
  lastFailedWal: string;
  lastFailedMs: number | undefined;
}

/** `untried`: nothing was ever archived or failed, so the first segment has to be closed on purpose. */
export type ArchivingVerdict = { kind: "working" } | { kind: "untried" } | { kind: "failing"; reason: string };

/** Whether WAL goes into the archive, before a backup relies on it (reference: backup §4.8). */
export function judgeArchiving(facts: ArchiverFacts): ArchivingVerdict {
  const { lastArchivedMs, lastFailedMs, lastFailedWal } = facts;
  if (lastArchivedMs === undefined && lastFailedMs === undefined) return { kind: "untried" };
  if (lastArchivedMs !== undefined && (lastFailedMs === undefined || lastArchivedMs > lastFailedMs)) {
    return { kind: "working" };
  }
  return { kind: "failing", reason: `the last attempt, of ${lastFailedWal}, failed` };
}

/**
 * Whether everything up to a segment is archived, as far as the archiver tells: it goes through the segments in order, and comes to
 * the label of a backup after the segment where that began. Histories say nothing, and neither does what lies before on another timeline.
 */
export function isArchivedUpTo(lastArchivedWal: string, needed: string): boolean {
  const [last, wanted] = [parseWalSegment(lastArchivedWal.slice(0, 24)), parseWalSegment(needed)];
  if (!last || !wanted) return false;
  // A backup that ends on a primary closes its segment before it leaves its label there, and the archiver goes by names.
  const isWhole = lastArchivedWal.length === 24 || lastArchivedWal.endsWith(".backup");
  const order = compareLsn(position(last), position(wanted));
  return last.timeline >= wanted.timeline && (order === 1 || (order === 0 && isWhole));
}

function position({ log, segment }: { log: number; segment: number }): string {
  return `${log.toString(16)}/${segment.toString(16)}`;
}
