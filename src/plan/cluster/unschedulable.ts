import { isMaintenanceInProgress, reusesPvc } from "../../api/cluster-facts.ts";
import type { Pod } from "../../api/generated/kubernetes.ts";
import { planPodDeletion } from "./healing.ts";
import { isPrimaryWell } from "./instance-jobs.ts";
import { type Pass, recordEvent, type Wait } from "./pass.ts";
import { startProblem, unschedulableMessage } from "./pods.ts";
import { planInstanceRemoval } from "./removal.ts";
import { outdatedSpec } from "./rollout-reason.ts";

/**
 * Pods that fit nowhere or cannot start: one whose spec is outdated is made anew, as the new spec may do. During
 * maintenance that gives volumes up, a replica that fits nowhere loses its volumes too and is cloned elsewhere; the
 * primary never does.
 */
export function planUnschedulablePods(pass: Pass): Wait | null {
  const stuck = pass.observed.pods.filter(isStuck);
  let acted = false;
  for (const pod of stuck) acted = planOne(pass, pod) || acted;
  return acted ? { requeueAfterMs: 1_000, because: "pods that cannot start are being recreated" } : null;
}

/** A pod that never ran and has nothing to lose. */
function isStuck(pod: Pod): boolean {
  return pod.status?.phase === "Pending" && !pod.metadata.deletionTimestamp && startProblem(pod) !== undefined;
}

function planOne(pass: Pass, pod: Pod): boolean {
  const name = pod.metadata.name ?? "";
  const outdated = outdatedSpec(pass, pod);
  if (outdated) {
    planPodDeletion(pass, pod, `recreating unschedulable pod: ${outdated}`);
    return true;
  }
  if (unschedulableMessage(pod) === undefined) return false;
  const isPrimary = name === pass.status.currentPrimary || name === pass.status.targetPrimary;
  if (isPrimary || !isMaintenanceInProgress(pass.cluster) || reusesPvc(pass.cluster)) return false;
  if (!isPrimaryWell(pass)) return false;
  recordEvent(pass, "Normal", "DeletePod", `Deleted unschedulable pod ${name}`);
  recordEvent(pass, "Normal", "DeletePVCs", `Deleted unschedulable pod ${name} PVCs`);
  planInstanceRemoval(pass, name, `pod ${name} is unschedulable during maintenance that does not reuse volumes`);
  return true;
}
