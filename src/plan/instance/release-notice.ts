import type { LeaseRecord } from "./lease.ts";

/**
 * What a holder tells the voters when it can't give the Lease back by writing it, because the API server is away or no
 * longer knows its pod: PostgreSQL is down, and this holder takes no write again but by a newer record. It says so of the
 * records that it names and of no other, so that it is true whenever it arrives (ADR 0012).
 */
export interface ReleaseNotice {
  /** Namespace and name of the cluster. */
  cluster: string;
  holder: string;
  /** UID of the holder's pod. */
  holderUID: string;
  transitions: number;
  /** Renew times of the last record that the holder knows as its own and of writes whose outcome it does not know. */
  renewTimes: readonly string[];
}

/** More than any holder has writes of unknown outcome. */
const longestList = 32;

/** Whether a notice speaks of this very record; anything written since says that it is void. */
export function isReleasedBy(notice: ReleaseNotice | undefined, record: LeaseRecord | undefined): boolean {
  if (!notice || !record?.voters?.holderUID) return false;
  return (
    record.holder === notice.holder &&
    record.voters.holderUID === notice.holderUID &&
    record.transitions === notice.transitions &&
    notice.renewTimes.includes(record.renewTime)
  );
}

/** Reads a notice from JSON; `null` when it is none. */
export function parseReleaseNotice(text: string): ReleaseNotice | null {
  let value: Partial<ReleaseNotice> | null;
  try {
    value = JSON.parse(text) as Partial<ReleaseNotice> | null;
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { cluster, holder, holderUID, transitions, renewTimes } = value;
  if ([cluster, holder, holderUID].some((it) => typeof it !== "string" || it === "")) return null;
  if (!Number.isSafeInteger(transitions) || !Array.isArray(renewTimes) || renewTimes.length > longestList) return null;
  if (renewTimes.some((it) => typeof it !== "string" || it === "")) return null;
  return { cluster, holder, holderUID, transitions, renewTimes } as ReleaseNotice;
}
