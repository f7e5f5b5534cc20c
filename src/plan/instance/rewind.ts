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
