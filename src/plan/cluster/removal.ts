import { clusterName } from "../../api/cluster-facts.ts";
import { annotations, labels } from "../../api/labels.ts";
import { parseGoBoolean } from "../../api/markers.ts";
import { parseInstanceSerial } from "../../api/names.ts";
import { expectedPvcs } from "../../build/pvcs.ts";
import { planPodDeletion, planVolumeDeletion } from "./healing.ts";
import { isPrimaryWell, planJobDeletion } from "./instance-jobs.ts";
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
  if (!isPrimaryWell(pass)) return null;
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

/** Removes one surplus instance that does not run; the primary has to be well, for the idle one may know more than others. */
export function planIdleScaleDown(pass: Pass): Wait | null {
  if (!isSurplus(pass) || !isPrimaryWell(pass)) return null;
  const running = new Set(pass.observed.pods.filter(isActivePod).map((it) => it.metadata.name));
  return removeLast(
    pass,
    (pass.status.instanceNames ?? []).filter((name) => !running.has(name)),
  );
}

/**
 * Removes one surplus instance that runs: the ready replica with the highest serial. Nobody is removed while an instance is
 * silent: it may be the very one whose removal has begun and is not seen yet.
 */
export function planScaleDown(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  if (!isSurplus(pass) || !isPrimaryWell(pass) || sorted.some((it) => it.kind === "silent")) return null;
  const victims = sorted
    .filter((it) => it.kind === "answered" && it.ready && !it.status.isPrimary)
    .map((it) => it.name);
  return removeLast(pass, victims);
}

/**
 * Ends removals that the operator began and did not live to finish: the volumes are on their way out, pod or Jobs are left.
 * Without surplus it was the user who deleted the volume, and the pod keeps what it has.
 */
export function planUnfinishedRemoval(pass: Pass): Wait | null {
  const { currentPrimary, targetPrimary, instances = 0 } = pass.status;
  if (instances < pass.cluster.spec.instances || !isPrimaryWell(pass)) return null;
  const leaving = pass.observed.volumes
    .filter((it) => it.metadata.deletionTimestamp && it.metadata.labels?.[labels.pvcRole] === "PG_DATA")
    .map((it) => it.metadata.name ?? "")
    .filter((name) => name !== currentPrimary && name !== targetPrimary);
  const unfinished = leaving.find((name) => hasPodOrJob(pass, name));
  if (unfinished === undefined) return null;
  const because = `the removal of instance ${unfinished} is not finished`;
  planInstanceRemoval(pass, unfinished, because);
  return { requeueAfterMs: 1_000, because };
}

function hasPodOrJob(pass: Pass, instance: string): boolean {
  const { pods, jobs } = pass.observed;
  return (
    pods.some((it) => it.metadata.name === instance && !it.metadata.deletionTimestamp) ||
    jobs.some((it) => instanceOfJob(it) === instance && !it.metadata.deletionTimestamp)
  );
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
