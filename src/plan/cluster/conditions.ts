import type { Cluster } from "../../api/generated/cluster.ts";
import { formatSeconds } from "./timestamps.ts";

export type ClusterStatus = NonNullable<Cluster["status"]>;
export type ClusterCondition = NonNullable<ClusterStatus["conditions"]>[number];

/** Types of the conditions that the operator writes. */
export const conditionTypes = {
  ready: "Ready",
  initialized: "Initialized",
  consistentSystemID: "ConsistentSystemID",
  hibernation: "cnpg.io/hibernation",
} as const;

const validReason = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;

/** Conditions whose reason the API server would accept. */
export function validConditions(conditions: readonly ClusterCondition[]): ClusterCondition[] {
  return conditions.filter((it) => validReason.test(it.reason));
}

/** Condition of a type, if there is one. */
export function findCondition(status: ClusterStatus, type: string): ClusterCondition | undefined {
  return status.conditions?.find((it) => it.type === type);
}

/** Sets a condition in place of the one with its type; the transition time moves only with the status. */
export function withCondition(
  status: ClusterStatus,
  condition: { type: string; status: "True" | "False"; reason: string; message: string },
  now: Date,
): ClusterStatus {
  const conditions = status.conditions ?? [];
  const before = conditions.find((it) => it.type === condition.type);
  const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : formatSeconds(now);
  const next: ClusterCondition = { ...before, ...condition, lastTransitionTime };
  return {
    ...status,
    conditions: before ? conditions.map((it) => (it === before ? next : it)) : [...conditions, next],
  };
}

/** Takes a condition away. */
export function withoutCondition(status: ClusterStatus, type: string): ClusterStatus {
  if (!findCondition(status, type)) return status;
  return { ...status, conditions: (status.conditions ?? []).filter((it) => it.type !== type) };
}

/** Whether the cluster has ever had an instance; an absent condition counts by the serial that old versions kept. */
export function isInitialized(status: ClusterStatus): boolean {
  return (
    findCondition(status, conditionTypes.initialized)?.status === "True" || (status.latestGeneratedNode ?? 0) !== 0
  );
}
