import type { Pod } from "../../api/generated/kubernetes.ts";
import { annotations } from "../../api/labels.ts";
import { phases } from "../../api/phases.ts";
import { conditionTypes, findCondition, withCondition, withoutCondition } from "./conditions.ts";
import { planPodDeletion } from "./healing.ts";
import type { Pass, Wait } from "./pass.ts";
import { roleOf } from "./pods.ts";

type Progress = { status: "True" | "False"; reason: string; message: string };

const begun = new Set(["DeletingPods", "WaitingPodsDeletion", "Hibernated"]);

/** Whether the user wants the cluster to sleep. */
export function isAskedToHibernate(pass: Pass): boolean {
  return pass.cluster.metadata.annotations?.[annotations.hibernation] === "on";
}

/**
 * Puts the cluster to sleep while the annotation says so: pods go one by one, the primary first, everything else stays
 * (reference: cluster controller §6.9). A cluster that is not healthy is first left to become so.
 */
export function planHibernation(pass: Pass): Wait | null {
  const type = conditionTypes.hibernation;
  if (!isAskedToHibernate(pass)) {
    pass.status = withoutCondition(pass.status, type);
    return null;
  }
  const hasBegun = begun.has(findCondition(pass.status, type)?.reason ?? "");
  const progress = hasBegun || pass.status.phase === phases.healthy ? sleepProgress(pass.observed.pods) : waiting;
  pass.status = withCondition(pass.status, { type, ...progress }, pass.now);
  switch (progress.reason) {
    case "WaitingForHealthy":
      return null;
    case "DeletingPods": {
      const pod = nextToStop(pass.observed.pods);
      if (pod) planPodDeletion(pass, pod, progress.message);
      return { requeueAfterMs: 5_000, because: progress.message };
    }
    case "Hibernated":
      return { because: progress.message };
    default:
      return { requeueAfterMs: 5_000, because: progress.message };
  }
}

const waiting: Progress = {
  status: "False",
  reason: "WaitingForHealthy",
  message: "Waiting for the cluster to be healthy before proceeding with hibernation",
};

function sleepProgress(pods: readonly Pod[]): Progress {
  if (pods.length === 0) return { status: "True", reason: "Hibernated", message: "Cluster has been hibernated" };
  const leaving = pods.find((it) => it.metadata.deletionTimestamp);
  if (leaving) {
    const message = `Waiting for ${leaving.metadata.name} to be deleted`;
    return { status: "False", reason: "WaitingPodsDeletion", message };
  }
  return { status: "False", reason: "DeletingPods", message: "Hibernation is in progress" };
}

function nextToStop(pods: readonly Pod[]): Pod | undefined {
  return pods.find((it) => roleOf(it) === "primary") ?? pods[0];
}
