import type { PostgresStatus } from "../../api/pg-status.ts";
import { parseLsn } from "../../postgres/lsn.ts";
import type { AnsweredInstance, PolledInstance } from "./observed.ts";

/**
 * Orders instances by their claim to be primary: those that answered first, primaries among them first, then the most
 * WAL, received or replayed; unreadable positions rank below every readable one, so the order is total whatever the
 * instances report. The timeline comes after the WAL: a standby tells the one of its last restartpoint, which for minutes
 * after a failover may be the old one although it has all WAL of the new. `designated` is the designated primary of a
 * replica cluster.
 */
export function sortInstances(instances: readonly PolledInstance[], designated?: string): PolledInstance[] {
  return [...instances].sort((a, b) => compareInstances(a, b, designated) || (a.name < b.name ? -1 : 1));
}

function compareInstances(a: PolledInstance, b: PolledInstance, designated: string | undefined): number {
  if (a.kind !== "answered" || b.kind !== "answered") return rank(b.kind === "answered") - rank(a.kind === "answered");
  if (a.status.isPrimary || b.status.isPrimary) return rank(b.status.isPrimary) - rank(a.status.isPrimary);
  return (
    comparePosition(furthest(b.status), furthest(a.status)) ||
    comparePosition(position(b.status.receivedLsn), position(a.status.receivedLsn)) ||
    comparePosition(position(b.status.replayLsn), position(a.status.replayLsn)) ||
    (b.status.timeLineID ?? 0) - (a.status.timeLineID ?? 0) ||
    rank(b.name === designated) - rank(a.name === designated)
  );
}

function rank(condition: boolean): number {
  return condition ? 1 : 0;
}

/** A standby that has not streamed since its start knows of nothing received, however much it has replayed. */
function furthest({ receivedLsn, replayLsn }: PostgresStatus): bigint {
  const received = position(receivedLsn);
  const replayed = position(replayLsn);
  return comparePosition(received, replayed) > 0 ? received : replayed;
}

function comparePosition(left: bigint, right: bigint): number {
  return left === right ? 0 : left < right ? -1 : 1;
}

function position(text: string | undefined): bigint {
  return (text === undefined ? undefined : parseLsn(text)) ?? -1n;
}

/**
 * Why an instance may not be promoted; `null` when it may. `knownTimeline` is the newest timeline that a primary of the
 * cluster ever reported: a primary below it missed a promotion, and whatever was committed after that it does not have.
 * `voters` are those of the primary Lease, if it names any: nobody else can take it, so nobody else is worth naming.
 */
export function ineligibility(
  instance: AnsweredInstance,
  isFencedHere: boolean,
  knownTimeline: number | undefined,
  voters: readonly string[],
): string | null {
  const { isPrimary, timeLineID } = instance.status;
  if (isPrimary && (timeLineID ?? 0) < (knownTimeline ?? 0)) return "it is a primary of an older timeline";
  if (isFencedHere) return "it is fenced";
  if (instance.status.mightBeUnavailable) return "it may be unavailable";
  if (instance.status.isPgRewindRunning) return "it is being rewound";
  if (instance.pod.metadata.deletionTimestamp) return "its pod is being removed";
  if (voters.length > 0 && !voters.includes(instance.name)) return "the primary lease does not list it as a voter";
  return null;
}

/** Whether an instance still takes WAL from somebody. */
export function isReceiving(status: PostgresStatus): boolean {
  return status.isWalReceiverActive;
}
