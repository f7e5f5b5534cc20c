import type { PersistentVolumeClaim, Pod } from "../../api/generated/kubernetes.ts";
import { annotations } from "../../api/labels.ts";
import { parsePvcStatus } from "../../api/markers.ts";
import { phases } from "../../api/phases.ts";
import { buildInstancePod, recordPodSpec } from "../../build/instance-pod.ts";
import { pvcStatusPatch } from "../../build/metadata-repair.ts";
import { buildPvc, expectedPvcs, volumeSource } from "../../build/pvcs.ts";
import { refTo } from "./actions.ts";
import { firstPrimarySources, isPrimaryWell, planInstanceJob } from "./instance-jobs.ts";
import { hasPrepared, instanceOfJob, isJobComplete } from "./jobs.ts";
import { draftCluster, type Pass, recordEvent, setPhase, type Wait } from "./pass.ts";
import { isActivePod, isEndedPod, roleOf, startProblem, unschedulableMessage } from "./pods.ts";
import { reportProblems } from "./problems.ts";
import type { ClassifiedVolumes, VolumeGroup } from "./volumes.ts";

/** Removes pods that have ended by themselves; their volumes stay and get new ones. */
export function planEndedPods(pass: Pass): Wait | null {
  const ended = pass.observed.pods.filter(isEndedPod);
  for (const pod of ended) planEndedPod(pass, pod);
  return ended.length > 0 ? { requeueAfterMs: 1_000, because: "ended pods are being removed" } : null;
}

function planEndedPod(pass: Pass, pod: Pod): void {
  const message = `Deleted '${pod.status?.phase}' pod: '${pod.metadata.name}'`;
  planPodDeletion(pass, pod, message);
  recordEvent(pass, "Normal", "DeletePod", message);
}

/** Plans the deletion of a pod as it was seen. */
export function planPodDeletion(pass: Pass, pod: Pod, reason: string): void {
  pass.actions.push({ kind: "delete", target: refTo(pod), propagation: "Background", bestEffort: false, reason });
}

/** Marks volumes as ready once the Job that fills them has succeeded, or a pod uses them. */
export function planReadyVolumes(pass: Pass, volumes: ClassifiedVolumes): void {
  for (const volume of pass.observed.volumes) {
    if (parsePvcStatus(volume) !== "initializing" || volume.metadata.deletionTimestamp) continue;
    const job = pass.observed.jobs.find((it) => hasPrepared(it, volume));
    const isUsed = volumes.byClass.healthy.includes(volume.metadata.name ?? "");
    if (!job && !isUsed) continue;
    const reason = job
      ? `job ${job.metadata.name} has prepared volume ${volume.metadata.name}`
      : `a pod uses volume ${volume.metadata.name}`;
    const patch = { ...pvcStatusPatch("ready") };
    pass.actions.push({ kind: "patch", target: refTo(volume), patch, bestEffort: false, reason });
  }
}

/**
 * Gives instances without a pod their pod back, on the volumes that are left: the primary first, and alone until it
 * runs if nothing else does, so that a cold start does not look like a lost primary. `null` when every instance has one.
 */
export function planReattach(pass: Pass, volumes: ClassifiedVolumes): Wait | null {
  const all = orphanedGroups(pass, volumes);
  if (all.length === 0) return null;
  const orphans = pass.failoverDelayed ? all.filter((it) => !isPrimaryGroup(pass, it)) : all;
  if (orphans.length === 0) return { requeueAfterMs: 1_000, because: "a failover is due when its delay is over" };
  const isCold = !pass.observed.pods.some(isActivePod);
  const primary = volumes.groups.find((it) => isPrimaryGroup(pass, it));
  if (isCold && primary && isPodPending(pass, primary)) return waitForActivePods(pass);
  const chosen = isCold && primary && orphans.includes(primary) ? [primary] : orphans;
  const waits = chosen.map((group) => reattach(pass, group)).filter((it) => it !== null);
  return waits[0] ?? { requeueAfterMs: 1_000, because: "pods are being created" };
}

/** Gives the primary alone its pod back, if it has none that could run and its volumes are complete. */
export function planPrimaryReattach(pass: Pass, volumes: ClassifiedVolumes): void {
  const ended = pass.observed.pods.find((it) => it.metadata.name === pass.status.currentPrimary && isEndedPod(it));
  if (ended) planEndedPod(pass, ended);
  const group = orphanedGroups(pass, volumes).find((it) => isPrimaryGroup(pass, it));
  if (group && group.missing.length === 0) reattach(pass, group);
}

function orphanedGroups(pass: Pass, volumes: ClassifiedVolumes): VolumeGroup[] {
  const candidates = new Set([...volumes.byClass.dangling, ...volumes.byClass.unusable]);
  const withPod = new Set(pass.observed.pods.map((it) => it.metadata.name));
  const busy = new Set(pass.observed.jobs.filter((it) => !isJobComplete(it)).map(instanceOfJob));
  return volumes.groups
    .filter((group) => group.volumes.some((it) => candidates.has(it.metadata.name ?? "")))
    .filter((group) => !withPod.has(group.instance) && !busy.has(group.instance))
    .sort((a, b) => Number(isPrimaryGroup(pass, b)) - Number(isPrimaryGroup(pass, a)));
}

/** Whether an instance is the primary, as the status or, before there is one, its volumes tell. */
function isPrimaryGroup(pass: Pass, group: VolumeGroup): boolean {
  const { currentPrimary, targetPrimary } = pass.status;
  if (currentPrimary || targetPrimary) return group.instance === (currentPrimary ?? targetPrimary);
  return group.volumes.some((it) => roleOf(it) === "primary");
}

function isPodPending(pass: Pass, group: VolumeGroup): boolean {
  const pod = pass.observed.pods.find((it) => it.metadata.name === group.instance);
  return pod?.status?.phase === "Pending" && !pod.metadata.deletionTimestamp;
}

function reattach(pass: Pass, group: VolumeGroup): Wait | null {
  const data = group.volumes.find((it) => it.metadata.name === group.instance);
  if (!data) return planHeadlessGroup(pass, group);
  const terminating = pass.observed.volumes.find(
    (it) => it.metadata.deletionTimestamp && expectedNames(pass, group).includes(it.metadata.name ?? ""),
  );
  if (terminating) {
    return { requeueAfterMs: 1_000, because: `volume ${terminating.metadata.name} is still being removed` };
  }
  planMissingVolumes(pass, group);
  const isPrepared = pass.observed.jobs.some((it) => hasPrepared(it, data));
  if (parsePvcStatus(data) !== "ready" && !isPrepared) return planInstanceJob(pass, group);
  const pod = recordPodSpec(buildInstancePod(draftCluster(pass), group.serial, pass.observed.operator.context));
  const reason = `instance ${group.instance} has its volumes but no pod`;
  pass.actions.push({ kind: "create", object: { ...pod }, mustOwn: true, reason });
  return null;
}

/**
 * The data volume is gone and others of the instance are left. What is in them belongs to that data, so a replica's are
 * removed and the instance is cloned anew, once there is a primary to clone from; the primary's are kept for a person to
 * decide. A data volume that is there but does not count, for example because it lost its serial, is no reason to delete.
 */
function planHeadlessGroup(pass: Pass, group: VolumeGroup): Wait {
  if (isPrimaryGroup(pass, group)) {
    const because = `the data volume of primary ${group.instance} is missing: restore it, or remove the instance's other volumes`;
    setPhase(pass, phases.unrecoverable, because);
    return { requeueAfterMs: 5_000, because };
  }
  const { volumes, orphanVolumes } = pass.observed;
  const uncounted = [...volumes, ...orphanVolumes].find(
    (it) => it.metadata.name === group.instance && !it.metadata.deletionTimestamp,
  );
  if (uncounted) {
    const because =
      `the data volume of ${group.instance} cannot be used: check that it is Bound, belongs to the cluster and has ` +
      `annotation ${annotations.nodeSerial}`;
    return { requeueAfterMs: 5_000, because };
  }
  if (!isPrimaryWell(pass)) {
    return { requeueAfterMs: 1_000, because: `${group.instance} can be made anew once the primary is ready` };
  }
  for (const volume of group.volumes)
    planVolumeDeletion(pass, volume, `the data volume of ${group.instance} is missing`);
  return { requeueAfterMs: 1_000, because: `what is left of ${group.instance} is being removed` };
}

/** Plans the deletion of a volume; it fails if the volume has changed since. */
export function planVolumeDeletion(pass: Pass, volume: PersistentVolumeClaim, reason: string): void {
  const target = refTo(volume, { content: true });
  pass.actions.push({ kind: "delete", target, propagation: "Background", bestEffort: false, reason });
}

function expectedNames(pass: Pass, group: VolumeGroup): string[] {
  return expectedPvcs(pass.cluster, group.instance).map((it) => it.name);
}

/** Creates the volumes that instances should have and lack, for example after a WAL volume was added to the spec. */
export function planMissingVolumes(pass: Pass, group: VolumeGroup): void {
  const sources = firstPrimarySources(pass, group.instance);
  for (const expected of expectedPvcs(pass.cluster, group.instance)) {
    if (!group.missing.includes(expected.name) || expected.role === "PG_DATA") continue;
    const source = sources && volumeSource(expected, sources);
    const { context } = pass.observed.operator;
    const volume = buildPvc(draftCluster(pass), group.serial, expected, context, source ? { source } : {});
    const reason = `instance ${group.instance} lacks volume ${expected.name}`;
    pass.actions.push({ kind: "create", object: { ...volume }, mustOwn: true, reason });
  }
}

/** Waits for every pod to run; says which one cannot, and why. */
export function waitForActivePods(pass: Pass): Wait | null {
  const idle = pass.observed.pods.filter((it) => !isActivePod(it));
  if (idle.length === 0) return null;
  const { phase } = pass.status;
  const keepsPhase = phase === phases.inPlacePrimaryRestart || phase === phases.inPlaceDeletePrimaryRestart;
  if (!keepsPhase) {
    const problems = idle.map(startProblem).filter((it) => it !== undefined);
    const text = "Some instances are not yet active. Please wait.";
    reportProblems(pass, phases.waitingForInstances, text, problems);
  }
  return { requeueAfterMs: 1_000, because: `${idle.map((it) => it.metadata.name).join(", ")} not active yet` };
}

/** Unschedulable pods whose spec is outdated are made again: the new spec may fit. */
export function unschedulablePods(pass: Pass): Pod[] {
  return pass.observed.pods.filter((it) => unschedulableMessage(it) !== undefined);
}
