/** A row whose commit was acknowledged. */
export interface Acknowledgement {
  readonly row: number;
  /** When the client was told so, in seconds since the epoch. */
  readonly at: number;
  /** Address of the server that said so. */
  readonly server: string;
}

/** What was seen of one fault. All clocks are one: every client of the local Kubernetes runs on this machine. */
export interface Observation {
  /** When the fault began, in seconds since the epoch. */
  readonly faultAt: number;
  /** Through the read-write Service, one connection for each row. */
  readonly throughService: readonly Acknowledgement[];
  /** By one session that was open on the primary before the fault. */
  readonly bySession: readonly Acknowledgement[];
  /** Rows that the primary has in the end; `undefined` when nobody could tell. */
  readonly stored: ReadonlySet<number> | undefined;
}

export interface Verdict {
  /** Longest time without an acknowledgement through the Service that ended after the fault began, in seconds. */
  readonly gapSeconds: number;
  readonly acknowledged: number;
  /** Rows that were acknowledged and are not there; null when nobody could tell. */
  readonly lost: number | null;
  /** From the fault to the last acknowledgement that the open session got; 0 = none came after it. */
  readonly sessionSeconds: number;
  /** How long the open session was still acknowledged after another server had acknowledged a row. */
  readonly overlapSeconds: number;
}

/** Judges one run: how long nobody could write, what was lost, and how long an old primary went on. */
export function judge({ faultAt, throughService, bySession, stored }: Observation): Verdict {
  const all = [...throughService, ...bySession];
  const lastOfSession = Math.max(faultAt, ...bySession.map(({ at }) => at));
  const old = bySession[0]?.server;
  // A pod that was made anew has another address: it may not write beside the old one either.
  const successor = throughService.find(({ at, server }) => at >= faultAt && server !== old);
  return {
    gapSeconds: longestGap(throughService, faultAt),
    acknowledged: all.length,
    lost: stored ? all.filter(({ row }) => !stored.has(row)).length : null,
    sessionSeconds: lastOfSession - faultAt,
    overlapSeconds: successor ? Math.max(0, lastOfSession - successor.at) : 0,
  };
}

/** In seconds, between two acknowledgements of which the later one came after that time. */
function longestGap(rows: readonly Acknowledgement[], since: number): number {
  return rows.slice(1).reduce((longest, { at }, index) => {
    const before = rows[index]?.at ?? at;
    return at < since ? longest : Math.max(longest, at - before);
  }, 0);
}

/** The value below which that share of a list lies, by nearest rank; `undefined` for an empty list. */
export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
