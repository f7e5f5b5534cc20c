/** What decides whether an old primary must be rewound before it follows the new one. */
export interface RewindView {
  /** Whether the control file says that PostgreSQL was shut down in order. */
  cleanShutdown: boolean;
  /** Timeline and position of the last checkpoint; after an orderly stop it is the last record. */
  timeline: number;
  checkpoint: bigint;
  /** Timeline of the new primary. */
  primaryTimeline: number;
  /** Where the new primary's history leaves my timeline; `undefined` when my timeline is not in it. */
  switchPoint: bigint | undefined;
}

export type RewindDecision = { needed: boolean; reason: string };

/** An old primary whose last record the new primary has replayed can follow as it is. */
export function planRewind(view: RewindView): RewindDecision {
  if (!view.cleanShutdown) return { needed: true, reason: "PostgreSQL was not shut down in order" };
  if (view.primaryTimeline === view.timeline) {
    return { needed: false, reason: "the primary is on the same timeline" };
  }
  if (view.switchPoint === undefined) {
    return { needed: true, reason: "the primary's history does not contain this timeline" };
  }
  // The record at `checkpoint` itself must lie before the switch point.
  if (view.switchPoint > view.checkpoint) {
    return { needed: false, reason: "the primary has replayed everything this instance wrote" };
  }
  return { needed: true, reason: "this instance wrote what the primary has not replayed" };
}

/**
 * WAL files that only this instance has and that the archive still lacks, which a rewind would remove. `archiveStatus` and
 * `present` are the names in `pg_wal/archive_status` and `pg_wal`.
 */
export function planKeptWal(view: {
  /** Whether an archiver is configured; without one PostgreSQL marks nothing that anyone waits for. */
  archives: boolean;
  archiveStatus: readonly string[];
  present: readonly string[];
}): string[] {
  if (!view.archives) return [];
  const present = new Set(view.present);
  return view.archiveStatus
    .filter((name) => name.endsWith(".ready"))
    .map((name) => name.slice(0, -".ready".length))
    .filter((name) => present.has(name))
    .sort();
}
