/** What decides whether an old primary must be rewound before it follows the new one. */
export interface RewindView {
  /** Whether the control file says that PostgreSQL was shut down in order. */
  cleanShutdown: boolean;
  /** Timeline and position of the last checkpoint; after an orderly stop it is the last record. */
  timeline: number;
  checkpoint: bigint;
  /** Timeline of the new primary. */
  primaryTimeline: number;
  /** Up to where the new primary has written; `undefined` when it did not tell. */
  primaryPosition: bigint | undefined;
  /** Where the new primary's history leaves my timeline; `undefined` when my timeline is not in it. */
  switchPoint: bigint | undefined;
  /** Whether both came to their timeline by the same history; `undefined` when one of the histories is not known. */
  sameHistory: boolean | undefined;
}

export type RewindDecision =
  | { kind: "follow"; reason: string }
  | { kind: "rewind"; reason: string }
  /** pg_rewind takes equal timelines for equal histories, so it can't help; only a new clone can. */
  | { kind: "clone"; reason: string };

/** An old primary whose last record the new primary has replayed can follow as it is. */
export function planRewind(view: RewindView): RewindDecision {
  const sameTimeline = view.primaryTimeline === view.timeline;
  // Two standbys that were promoted without knowing of each other take the same number.
  if (sameTimeline && view.sameHistory === false) {
    return { kind: "clone", reason: `the primary's timeline ${view.timeline} is another one than this instance's` };
  }
  if (!view.cleanShutdown) return { kind: "rewind", reason: "PostgreSQL was not shut down in order" };
  if (sameTimeline && view.primaryPosition !== undefined && view.primaryPosition < view.checkpoint) {
    return { kind: "clone", reason: `the primary is on the same timeline (${view.timeline}) and behind this instance` };
  }
  if (sameTimeline) return { kind: "follow", reason: "the primary is on the same timeline" };
  if (view.switchPoint === undefined) {
    return { kind: "rewind", reason: "the primary's history does not contain this timeline" };
  }
  // The record at `checkpoint` itself must lie before the switch point.
  if (view.switchPoint > view.checkpoint) {
    return { kind: "follow", reason: "the primary has replayed everything this instance wrote" };
  }
  return { kind: "rewind", reason: "this instance wrote what the primary has not replayed" };
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

/** What is known of a rewind that began and did not end. */
export interface RewindRecord {
  /** How often pg_rewind was started. */
  attempts: number;
  /** A new clone is whole and takes the old folder's place. */
  swapping: boolean;
}

/** Reads the record; whatever it says, its being there means that the folder is not to be trusted. */
export function parseRewindRecord(text: string): RewindRecord {
  const attempts = Number(/^attempts=(\d+)$/m.exec(text)?.[1] ?? 1);
  return { attempts, swapping: /^swapping$/m.test(text) };
}

export function formatRewindRecord(record: RewindRecord): string {
  return `attempts=${record.attempts}\n${record.swapping ? "swapping\n" : ""}`;
}

/** How often pg_rewind may fail, or be killed, before the folder is given up. */
export const rewindAttempts = 3;

export type RewindStep =
  | { kind: "rewind" }
  | { kind: "clone"; reason: string }
  /** Only a person can go on. */
  | { kind: "giveUp"; reason: string };

/** What follows on the attempts so far. */
export function planRewindStep(view: {
  attempts: number;
  /** Annotation `cnpg-ts.dev/failedRewind` of the Cluster; anything but `clone` keeps the folder. */
  policy: string;
  tablespaces: boolean;
}): RewindStep {
  if (view.attempts < rewindAttempts) return { kind: "rewind" };
  const failed = `pg_rewind has failed ${view.attempts} times`;
  const remedy =
    "look at its messages; to have this instance cloned anew, delete its volumes and pod, or annotate the pod with " +
    "alpha.cnpg.io/unrecoverable=true";
  if (view.tablespaces)
    return { kind: "giveUp", reason: `${failed}, and an instance with tablespaces is not cloned in place; ${remedy}` };
  if (view.policy === "clone") return { kind: "clone", reason: failed };
  return { kind: "giveUp", reason: `${failed}, and cnpg-ts.dev/failedRewind is "${view.policy}"; ${remedy}` };
}
