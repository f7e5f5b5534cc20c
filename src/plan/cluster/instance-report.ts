import { type ClusterStatus, conditionTypes, withCondition } from "./conditions.ts";
import type { AnsweredInstance, PolledInstance } from "./observed.ts";
import type { Pass } from "./pass.ts";

/** Stage after the status calls: writes down what the instances reported, before anything is decided on it. */
export function recordInstanceReport(pass: Pass, sorted: readonly PolledInstance[]): void {
  const answered = sorted.filter((it): it is AnsweredInstance => it.kind === "answered");
  const timeline = answered.find((it) => it.status.isPrimary)?.status.timeLineID;
  const identity = systemIdentity(sorted, answered);
  const { instancesReportedState: _, ...rest } = pass.status;
  const next: ClusterStatus = sorted.length > 0 ? { ...rest, instancesReportedState: reportedState(sorted) } : rest;
  // Timelines only grow: an old primary that answers again, its successor gone, must not turn the record back.
  if (timeline !== undefined) next.timelineID = Math.max(timeline, pass.status.timelineID ?? 0);
  if (identity.systemID) next.systemID = identity.systemID;
  else delete next.systemID;
  pass.status = withCondition(next, { type: conditionTypes.consistentSystemID, ...identity.condition }, pass.now);
}

function reportedState(sorted: readonly PolledInstance[]): NonNullable<ClusterStatus["instancesReportedState"]> {
  return Object.fromEntries(
    sorted.map((it) => {
      const ip = it.pod.status?.podIP;
      const isPrimary = it.kind === "answered" && it.status.isPrimary;
      const timeline = it.kind === "answered" ? it.status.timeLineID : undefined;
      return [it.name, { isPrimary, ...(timeline ? { timeLineID: timeline } : {}), ...(ip ? { ip } : {}) }];
    }),
  );
}

function systemIdentity(
  polled: readonly PolledInstance[],
  answered: readonly AnsweredInstance[],
): { systemID?: string; condition: { status: "True" | "False"; reason: string; message: string } } {
  const unique = [...new Set(answered.map((it) => it.status.systemID).filter((id) => id !== ""))].sort();
  const [systemID] = unique;
  if (systemID === undefined) {
    const message =
      polled.length === 0
        ? "No instances are present in the cluster to report a system ID."
        : "Instances are present, but none have reported a system ID.";
    return { condition: { status: "False", reason: "NotFound", message } };
  }
  if (unique.length > 1) {
    const list = unique.map((id) => JSON.stringify(id)).join(" ");
    const message = `Multiple differing system IDs reported by instances: [${list}]`;
    return { condition: { status: "False", reason: "Mismatch", message } };
  }
  const message = "A single, unique system ID was found across reporting instances.";
  return { systemID, condition: { status: "True", reason: "Unique", message } };
}
