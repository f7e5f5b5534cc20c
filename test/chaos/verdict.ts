/** A row whose commit was acknowledged, with the time of that in seconds since the epoch. */
export interface Acknowledgement {
  readonly row: number;
  readonly at: number;
}

/** What was seen of one fault. All clocks are one: every node of the local Kubernetes runs on this machine. */
export interface Observation {
  /** When the fault began, in seconds since the epoch. */
  readonly faultAt: number;
  /** Through the read-write Service, one connection for each row. */
  readonly throughService: readonly Acknowledgement[];
  /** By one session that was open on the primary before the fault. */
  readonly bySession: readonly Acknowledgement[];
  /** Rows that the primary has in the end. */
  readonly stored: ReadonlySet<number>;
  /** Whether another instance is the primary in the end. */
  readonly moved: boolean;
}

export interface Verdict {
  /** Longest time without an acknowledgement through the Service that ended after the fault began, in seconds. */
  readonly gapSeconds: number;
  readonly acknowledged: number;
  /** Rows that were acknowledged and are not there. */
  readonly lost: number;
  /** From the fault to the last acknowledgement that the open session got; 0 = none came after it. */
  readonly sessionSeconds: number;
  /** How long the open session was still acknowledged after the new primary had acknowledged a row. */
  readonly overlapSeconds: number;
}

/** Two acknowledgements and the time between them. */
function longestGap(rows: readonly Acknowledgement[], since: number): { seconds: number; endsAt: number } {
  let longest = { seconds: 0, endsAt: since };
  for (const [index, { at }] of rows.entries()) {
    const before = rows[index - 1]?.at;
    if (before === undefined || at < since) continue;
    if (at - before > longest.seconds) longest = { seconds: at - before, endsAt: at };
  }
  return longest;
}

/** Judges one run: how long nobody could write, what was lost, and how long an old primary went on. */
export function judge({ faultAt, throughService, bySession, stored, moved }: Observation): Verdict {
  const gap = longestGap(throughService, faultAt);
  const all = [...throughService, ...bySession];
  const lastOfSession = Math.max(faultAt, ...bySession.map(({ at }) => at));
  return {
    gapSeconds: gap.seconds,
    acknowledged: all.length,
    lost: all.filter(({ row }) => !stored.has(row)).length,
    sessionSeconds: lastOfSession - faultAt,
    overlapSeconds: moved ? Math.max(0, lastOfSession - gap.endsAt) : 0,
  };
}

/** The value below which that share of a list lies, by nearest rank; `undefined` for an empty list. */
export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
