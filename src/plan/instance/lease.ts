import type { LeaseVoters } from "../../api/lease-voters.ts";

/** The primary Lease as it was read. */
export interface LeaseRecord {
  /** Empty when nobody holds it. */
  holder: string;
  renewTime: string;
  transitions: number;
  /** Seconds that the holder's last write is good for. */
  durationSeconds: number;
  /** `undefined` when the record was written by a peer that keeps no voters, or was made anew. */
  voters: LeaseVoters | undefined;
}

export interface LeaseView {
  me: string;
  /** Identifies this pod among pods of the same name. */
  myUid: string;
  record: LeaseRecord;
  /** Whether this process wrote the record as its holder before, or took over a primary that runs under it. */
  heldBefore: boolean;
  /** `leaseTransitions` of the last record that was seen or written as the own one; `undefined` when there was none. */
  ownTransitions: number | undefined;
  /** How long this record (holder and renew time) has been seen unchanged, on the own clock. */
  unchangedMs: number;
  /** Whether this process, or the runtime before it, took the right to write and it has not ended at this moment. */
  rightHeld: boolean;
  leaseDurationMs: number;
  /** `status.currentPrimary`. */
  currentPrimary: string;
  /** `spec.instances` is 1: nobody else could be writing. */
  clusterOfOne: boolean;
  /** How long a promise to the holder still binds, in milliseconds; 0 = none does. */
  promisedMs: number;
  /** The holder told this instance that it is down, and that this very record is the last that it wrote. */
  toldReleased: boolean;
  /** A person named this instance, and the record is one of those that only a person can decide about. @default false */
  named?: boolean;
}

export type LeaseDecision =
  /** The record is mine: write a new renew time. */
  | { kind: "renew" }
  /** Take it: `transitions` grows by one. */
  | { kind: "claim"; reason: string }
  | { kind: "wait"; reason: string; afterMs: number }
  /** Someone else took what this process held, and may have given it back since; PostgreSQL must stop. */
  | { kind: "lost"; holder: string }
  /** Only a person may go on. */
  | { kind: "refuse"; reason: string };

/** Whether a record names this very pod as its holder. */
export function isOwnLease(view: Pick<LeaseView, "me" | "myUid" | "record" | "clusterOfOne">): boolean {
  if (view.record.holder !== view.me) return false;
  const uid = view.record.voters?.holderUID;
  // A record without a UID comes from a peer that knows pods by name only.
  return !uid || uid === view.myUid || view.clusterOfOne;
}

/** A record that another one wrote after the own one. A Lease that was made anew has no history and proves nothing. */
function wasTaken(view: LeaseView): boolean {
  const { holder, transitions } = view.record;
  if (!view.heldBefore) return false;
  return holder !== "" || (transitions >= 1 && transitions !== view.ownTransitions);
}

function planEmptyHolder(view: LeaseView): LeaseDecision {
  const released = view.record.transitions >= 1;
  if (released) return { kind: "claim", reason: "the lease was released" };
  if (view.currentPrimary === "") return { kind: "claim", reason: "first boot" };
  // By the Lease before and by promises since: nobody can have been primary after it, recorded as the current one or not.
  if (view.rightHeld) return { kind: "claim", reason: "the lease was made anew while the right to write was held" };
  const isCurrent = view.currentPrimary === view.me;
  if (!isCurrent && !view.named) {
    return { kind: "refuse", reason: `the lease was made anew and only ${view.currentPrimary} may claim it` };
  }
  const reason = `the lease was made anew${isCurrent ? "" : " and a person named this instance"}`;
  if (isCurrent && view.clusterOfOne) return { kind: "claim", reason };
  // Somebody may still write by the Lease that was there before, renewed just before it was deleted.
  if (view.unchangedMs >= view.leaseDurationMs) return { kind: "claim", reason };
  return { kind: "wait", reason, afterMs: view.leaseDurationMs - view.unchangedMs };
}

/** Decides the next step towards holding the primary lease (safety protocol §1.1, §1.4). */
export function planLease(view: LeaseView): LeaseDecision {
  const { record } = view;
  // Whatever the Lease says: whoever was promised may be writing until the promise ends.
  if (view.promisedMs > 0) return { kind: "wait", reason: "its holder was promised time", afterMs: view.promisedMs };
  if (isOwnLease(view)) return { kind: "renew" };
  if (wasTaken(view)) return { kind: "lost", holder: record.holder };
  const voters = record.voters?.voters;
  if (voters && voters.length > 0 && !voters.includes(view.me) && !view.named) {
    return { kind: "refuse", reason: `${view.me} is not among the voters (${voters.join(", ")}) of the lease` };
  }
  if (record.holder === "") return planEmptyHolder(view);
  if (view.toldReleased) return { kind: "claim", reason: `${record.holder} told that it is down` };
  // The holder may run with a longer duration than this candidate was told.
  const durationMs = Math.max(view.leaseDurationMs, record.durationSeconds * 1000);
  if (view.unchangedMs >= durationMs) {
    return {
      kind: "claim",
      reason: `${record.holder} has not renewed it for ${Math.round(view.unchangedMs / 1000)} s`,
    };
  }
  return {
    kind: "wait",
    reason: `held by ${record.holder === view.me ? "a former pod of this name" : record.holder}`,
    afterMs: durationMs - view.unchangedMs,
  };
}

/** Who is the primary by the Cluster's word, and who is to be: what a wish for the Lease rests on. */
export interface Primaries {
  current: string;
  target: string;
}

/**
 * Why a wish for the Lease is outdated, by a copy of the Cluster that was read after the record it is to take the place of; `undefined`
 * when it is not. Whoever waited for the Lease, or is told late of what changes, would start what was primary before others were.
 */
export function outdatedWish(wish: Primaries, live: Primaries): string | undefined {
  if (wish.current === live.current && wish.target === live.target) return undefined;
  const [current, target] = [live.current || "nobody", live.target || "nobody"];
  return `by now the current primary is ${current} and the target primary ${target}: the role is decided anew`;
}

/**
 * Whether the current primary, which is not to be primary any more and whose PostgreSQL is down, has to take the Lease in
 * order to give it back: nobody else may take one that was made anew, nor one that does not list the target primary.
 */
export function mustHandOver(
  view: Pick<LeaseView, "me" | "record" | "currentPrimary"> & { targetPrimary: string },
): boolean {
  const { me, record, currentPrimary, targetPrimary } = view;
  if (currentPrimary !== me || targetPrimary === me) return false;
  if (record.holder === "" && record.transitions === 0) return true;
  const voters = record.voters?.voters ?? [];
  return voters.includes(me) && targetPrimary !== "" && !voters.includes(targetPrimary);
}

/**
 * Whether the designated primary of a replica cluster, where nobody holds the Lease, has to take it in order to give it back with
 * another list: else every voter could leave the cluster in time, and nobody could be promoted.
 */
export function mustRelist(
  view: Pick<LeaseView, "me" | "record" | "currentPrimary"> & { targetPrimary: string; voters: readonly string[] },
): boolean {
  const { me, record, currentPrimary, targetPrimary } = view;
  if (currentPrimary !== me || targetPrimary !== me) return false;
  const listed = record.voters?.voters ?? [];
  if (record.holder !== "" || record.transitions === 0 || !listed.includes(me)) return false;
  return [...listed].sort().join() !== [...view.voters].sort().join();
}

/** What the list of voters is to be, as the holder writes it. */
export function planVoters(view: {
  me: string;
  listed: readonly string[];
  /** `undefined` while the Cluster is not known, as right after a start: then the list stays as it is. */
  instanceNames: readonly string[] | undefined;
  /** Instances whose pod is up; an instance counts only once its manager can answer. */
  active: readonly string[];
}): string[] {
  if (!view.instanceNames) return [...new Set([view.me, ...view.listed])].sort();
  const known = new Set([...view.listed, ...view.active]);
  const voters = view.instanceNames.filter((name) => known.has(name));
  return [...new Set([view.me, ...voters])].sort();
}

/** Timings of the lease, from `spec.primaryLease`. */
export interface LeaseTimings {
  leaseDurationMs: number;
  renewDeadlineMs: number;
  retryPeriodMs: number;
  releasedDurationSeconds: number;
}

export function compileLeaseTimings(
  spec:
    | {
        leaseDurationSeconds?: number;
        renewDeadlineSeconds?: number;
        retryPeriodSeconds?: number;
        releasedLeaseDurationSeconds?: number;
      }
    | undefined,
): LeaseTimings {
  return {
    leaseDurationMs: (spec?.leaseDurationSeconds || 15) * 1000,
    renewDeadlineMs: (spec?.renewDeadlineSeconds || 10) * 1000,
    retryPeriodMs: (spec?.retryPeriodSeconds || 2) * 1000,
    releasedDurationSeconds: spec?.releasedLeaseDurationSeconds || 1,
  };
}
