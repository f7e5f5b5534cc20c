import { formatWalSegment, nextWalSegment, parseWalSegment } from "../postgres/wal-name.ts";

const readySuffix = ".ready";

/** Names of the files in `archive_status` that wait to be archived. */
export function readyNames(statusFiles: readonly string[]): string[] {
  return statusFiles.flatMap((file) => (file.endsWith(readySuffix) ? [file.slice(0, -readySuffix.length)] : []));
}

export interface LookAheadView {
  /** What PostgreSQL asked for last. */
  requested: string;
  /** Names that wait, in any order. */
  ready: readonly string[];
  /** Names whose upload runs, waits, or is recorded. */
  taken: ReadonlySet<string>;
  /** How many names beyond the requested one may be taken at once. */
  ahead: number;
}

/**
 * Chooses what to upload before it is asked for: whole segments of the requested file's timeline, ascending, from the
 * requested one on. Anything else (history, labels, partial segments, other timelines) waits until PostgreSQL asks.
 */
export function chooseLookAhead(view: LookAheadView): string[] {
  const requested = parseWalSegment(view.requested);
  if (!requested) return [];
  const beyond = view.ready
    .filter((name) => name > view.requested && parseWalSegment(name)?.timeline === requested.timeline)
    .sort();
  const free = view.ahead - beyond.filter((name) => view.taken.has(name)).length;
  return beyond.filter((name) => !view.taken.has(name)).slice(0, Math.max(0, free));
}

/** The segments that recovery will ask for after one, on the same timeline. */
export function choosePrefetch(requested: string, count: number, segmentBytes: number): string[] {
  const names: string[] = [];
  let segment = parseWalSegment(requested);
  while (segment && names.length < count) {
    segment = nextWalSegment(segment, segmentBytes);
    if (segment) names.push(formatWalSegment(segment));
  }
  return names;
}
