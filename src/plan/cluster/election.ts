import type { PostgresStatus } from "../../api/pg-status.ts";
import { parseLsn } from "../../postgres/lsn.ts";
import type { AnsweredInstance, PolledInstance } from "./observed.ts";

/**
 * Orders instances by their claim to be primary: those that answered first, primaries among them first, then the more
 * advanced timeline, then received and replayed WAL; unreadable positions rank below every readable one, so the order
 * is total whatever the instances report. `designated` is the designated primary of a replica cluster.
 */
export function sortInstances(instances: readonly PolledInstance[], designated?: string): PolledInstance[] {
  return [...instances].sort((a, b) => compareInstances(a, b, designated) || (a.name < b.name ? -1 : 1));
}

function compareInstances(a: PolledInstance, b: PolledInstance, designated: string | undefined): number {
  if (a.kind !== "answered" || b.kind !== "answered") return rank(b.kind === "answered") - rank(a.kind === "answered");
  if (a.status.isPrimary || b.status.isPrimary) return rank(b.status.isPrimary) - rank(a.status.isPrimary);
  return (
    (b.status.timeLineID ?? 0) - (a.status.timeLineID ?? 0) ||
    comparePosition(b.status.receivedLsn, a.status.receivedLsn) ||
    comparePosition(b.status.replayLsn, a.status.replayLsn) ||
    rank(b.name === designated) - rank(a.name === designated)
  );
}

function rank(condition: boolean): number {
  return condition ? 1 : 0;
}

function comparePosition(a: string | undefined, b: string | undefined): number {
  const left = position(a);
  const right = position(b);
  return left === right ? 0 : left < right ? -1 : 1;
}

function position(text: string | undefined): bigint {
  return (text === undefined ? undefined : parseLsn(text)) ?? -1n;
}

/** Why an instance may not be promoted; `null` when it may. */
export function ineligibility(instance: AnsweredInstance, isFencedHere: boolean): string | null {
  if (isFencedHere) return "it is fenced";
  if (instance.status.mightBeUnavailable) return "it may be unavailable";
  if (instance.status.isPgRewindRunning) return "it is being rewound";
  if (instance.pod.metadata.deletionTimestamp) return "its pod is being removed";
  return null;
}

/** Whether an instance still takes WAL from somebody. */
export function isReceiving(status: PostgresStatus): boolean {
  return status.isWalReceiverActive;
}
