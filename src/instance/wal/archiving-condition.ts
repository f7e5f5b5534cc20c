import type { Cluster } from "../../api/generated/cluster.ts";

type Condition = NonNullable<NonNullable<Cluster["status"]>["conditions"]>[number];
export type WantedCondition = Omit<Condition, "lastTransitionTime">;

/** The condition that tells how WAL archiving goes; an empty text means well. */
export function archivingCondition(error: string): WantedCondition {
  return error === ""
    ? {
        type: "ContinuousArchiving",
        status: "True",
        reason: "ContinuousArchivingSuccess",
        message: "Continuous archiving is working",
      }
    : { type: "ContinuousArchiving", status: "False", reason: "ContinuousArchivingFailing", message: error };
}

/**
 * The condition of a cluster whose WAL goes nowhere. Neither True, which would promise what nobody does, nor False, which
 * health checks take for a fault of a cluster that never asked for an archive.
 */
export const unconfiguredArchiving: WantedCondition = {
  type: "ContinuousArchiving",
  status: "Unknown",
  reason: "ContinuousArchivingNotConfigured",
  message:
    "No WAL archiver is configured, so WAL is dropped: set spec.plugins with isWALArchiver, or spec.backup.barmanObjectStore",
};

/** Whether the Cluster shows the condition as wanted. */
export function showsCondition(cluster: Cluster, wanted: WantedCondition): boolean {
  const shown = cluster.status?.conditions?.find((condition) => condition.type === wanted.type);
  return shown?.status === wanted.status && shown.reason === wanted.reason && shown.message === wanted.message;
}
