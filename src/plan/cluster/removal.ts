import { clusterName } from "../../api/cluster-facts.ts";
import { annotations, labels } from "../../api/labels.ts";
import { parseGoBoolean } from "../../api/markers.ts";
import { parseInstanceSerial } from "../../api/names.ts";
import { expectedPvcs } from "../../build/pvcs.ts";
import { planPodDeletion, planVolumeDeletion } from "./healing.ts";
import { planJobDeletion } from "./instance-jobs.ts";
import { instanceOfJob } from "./jobs.ts";
import type { PolledInstance } from "./observed.ts";
import { type Pass, recordEvent, type Wait } from "./pass.ts";
import { isActivePod } from "./pods.ts";

/** Plans the removal of an instance for good: volumes, then pod, then Jobs. */
export function planInstanceRemoval(pass: Pass, instance: string, reason: string): void {
  const names = new Set(expectedPvcs(pass.cluster, instance).map((it) => it.name));
  for (const volume of pass.observed.volumes) {
    const isPart = names.has(volume.metadata.name ?? "") || volume.metadata.labels?.[labels.instanceName] === instance;
    if (isPart && !volume.metadata.deletionTimestamp) planVolumeDeletion(pass, volume, reason);
  }
  const pod = pass.observed.pods.find((it) => it.metadata.name === instance);
  if (pod && !pod.metadata.deletionTimestamp) planPodDeletion(pass, pod, reason);
  for (const job of pass.observed.jobs) {
    if (instanceOfJob(job) === instance && !job.metadata.deletionTimestamp) planJobDeletion(pass, job, reason, false);
  }
}

/** Removes an instance that the user has given up by annotation, so that it is made anew (reference §5.6). */
export function planUnrecoverable(pass: Pass): Wait | null {
  const { currentPrimary, targetPrimary } = pass.status;
  const [instance] = pass.observed.pods
    .filter((pod) => parseGoBoolean(pod.metadata.annotations?.[annotations.unrecoverable]) === true)
    .map((pod) => pod.metadata.name ?? "")
    .filter((name) => name !== currentPrimary && name !== targetPrimary)
    .sort();
  if (instance === undefined) return null;
  const because = `instance ${instance} is marked as unrecoverable`;
  planInstanceRemoval(pass, instance, because);
  return { requeueAfterMs: 5_000, because };
}

/** Keeps the number of instances above what synchronous replication needs. */
export function planScaleDownLimit(pass: Pass): Wait | null {
  const { instances, maxSyncReplicas = 0 } = pass.cluster.spec;
  const present = pass.status.instances ?? 0;
  if (present <= instances || maxSyncReplicas <= 0 || instances >= maxSyncReplicas + 1) return null;
  const because = `Can't scale down lower than maxSyncReplicas, going back to ${present}`;
  recordEvent(pass, "Warning", "NoScaleDown", because);
  pass.actions.push({ kind: "patchCluster", patch: { spec: { instances: present } }, reason: because });
  return { requeueAfterMs: 1_000, because };
}

/** Removes one surplus instance that does not run; it can be told without asking anybody. */
export function planIdleScaleDown(pass: Pass): Wait | null {
  if (!isSurplus(pass)) return null;
  const running = new Set(pass.observed.pods.filter(isActivePod).map((it) => it.metadata.name));
  return removeLast(
    pass,
    (pass.status.instanceNames ?? []).filter((name) => !running.has(name)),
  );
}

/** Removes one surplus instance that runs: the ready replica with the highest serial that answered in this pass. */
export function planScaleDown(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  if (!isSurplus(pass)) return null;
  const victims = sorted
    .filter((it) => it.kind === "answered" && it.ready && !it.status.isPrimary)
    .map((it) => it.name);
  return removeLast(pass, victims);
}

function isSurplus(pass: Pass): boolean {
  return (pass.status.instances ?? 0) > pass.cluster.spec.instances;
}

function removeLast(pass: Pass, candidates: readonly string[]): Wait | null {
  const { currentPrimary, targetPrimary } = pass.status;
  const serial = (name: string) => parseInstanceSerial(clusterName(pass.cluster), name) ?? 0;
  const [victim] = candidates
    .filter((name) => name !== currentPrimary && name !== targetPrimary)
    .sort((a, b) => serial(b) - serial(a));
  if (victim === undefined) return null;
  const because = `Scaling down - removing instance: ${victim}`;
  recordEvent(pass, "Normal", "ScaleDown", because);
  planInstanceRemoval(pass, victim, because);
  return { requeueAfterMs: 1_000, because };
}
