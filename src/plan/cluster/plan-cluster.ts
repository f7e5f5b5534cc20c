import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { phases } from "../../api/phases.ts";
import type { ClusterAction } from "./actions.ts";
import { planAdoption } from "./adoption.ts";
import { planAuxiliaryObjects } from "./auxiliary.ts";
import { planFirstPrimary } from "./bootstrap.ts";
import type { ClusterStatus } from "./conditions.ts";
import { planDeadVolumes } from "./dead-volumes.ts";
import { sortInstances } from "./election.ts";
import { planFailover, planTargetRepair } from "./failover.ts";
import { waitForCommunication, waitForDiskSpace, waitForReadiness, waitForSinglePrimary } from "./guards.ts";
import { planEndedPods, planPrimaryReattach, planReadyVolumes, planReattach, waitForActivePods } from "./healing.ts";
import { isAskedToHibernate, planHibernation } from "./hibernation.ts";
import { planImage, reportMajorUpgrade } from "./image.ts";
import { planFinishedJobs, planStuckJobs, waitForFailedJobs, waitForRunningJobs } from "./instance-jobs.ts";
import { recordInstanceReport } from "./instance-report.ts";
import { keepWalStorage, reportKeptWalStorage } from "./kept-volumes.ts";
import { planManagerUpgrade } from "./manager-upgrade.ts";
import { planMetadataRepair } from "./metadata.ts";
import type { ObservedCluster, PolledInstance } from "./observed.ts";
import { beginPass, flushStatus, type Pass, setPhase, type Wait } from "./pass.ts";
import { planPluginHooks, planPlugins } from "./plugins.ts";
import { isAlivePod } from "./pods.ts";
import { planWordRemoval } from "./primary-lease.ts";
import {
  planIdleScaleDown,
  planScaleDown,
  planScaleDownLimit,
  planUnfinishedRemoval,
  planUnrecoverable,
} from "./removal.ts";
import { planReplicaTransition, waitForReplicaPromotion } from "./replica-cluster.ts";
import { planNewReplicas, reportingInstances } from "./replicas.ts";
import { primaryState, waitForPromotion } from "./roles.ts";
import { planConfigurationGate, planRollout } from "./rollout.ts";
import { recomputeStatus } from "./status.ts";
import { planUnschedulablePods } from "./unschedulable.ts";
import { planVolumeChanges } from "./volume-changes.ts";
import { classifyVolumes } from "./volumes.ts";

/** What one pass is to do. */
export interface ClusterPlan {
  actions: ClusterAction[];
  /** The status as the actions leave it. */
  status: ClusterStatus;
  /** Look again after this many milliseconds even if nothing changes; absent = only when something does. */
  requeueAfterMs?: number;
  /** Why the pass ends where it does. */
  because: string;
  /** True when every stage was passed: the hooks after a pass follow. */
  settled?: boolean;
  /** True when a plan without status calls said all there is to say; then nobody need be asked. */
  complete: boolean;
}

/**
 * What follows from the API objects alone, before any instance is asked: roles on pods, and the quiet of a promotion.
 * It is short so that a new primary is reachable through its Service at once, however long the status calls take.
 */
export function planBeforeStatusCalls(cluster: Cluster, observed: ObservedCluster, now: Date): ClusterPlan {
  const pass = beginPass(keepWalStorage(cluster, observed.volumes), observed, now);
  if (isDisabled(cluster)) return finish(pass, { because: "reconciliation is disabled by annotation" }, true);
  recomputeStatus(pass, volumesOf(pass));
  const wait = waitForPromotion(pass, primaryState(pass)) ?? waitForReplicaPromotion(pass);
  if (wait) {
    flushStatus(pass, wait.because);
    return finish(pass, wait, true);
  }
  // The status is written by the pass that follows, in one piece.
  if (primaryState(pass).kind === "stable") planMetadataRepair(pass);
  return finish(pass, { because: "the instances are to be asked" }, false);
}

/** Decides everything that one pass does for a cluster; pure, so that the same facts give the same plan. */
export function planCluster(cluster: Cluster, observed: ObservedCluster, now: Date): ClusterPlan {
  const pass = beginPass(keepWalStorage(cluster, observed.volumes), observed, now);
  if (isDisabled(cluster)) return finish(pass, { because: "reconciliation is disabled by annotation" }, true);
  recomputeStatus(pass, volumesOf(pass));
  const designated = cluster.status?.currentPrimary;
  const sorted = sortInstances(observed.instances, designated);
  const wait = runStages(pass, [
    (it) => waitForPromotion(it, primaryState(it)),
    waitForReplicaPromotion,
    (it) => planAvailability(it, sorted),
    planPlugins,
    planAdoption,
    planImage,
    planAuxiliaryObjects,
    planPluginHooks,
    (it) => planResources(it, sorted),
    reportMajorUpgrade,
  ]);
  if (wait) {
    flushStatus(pass, wait.because);
    return finish(pass, wait, true);
  }
  if (pass.cluster === cluster) setPhase(pass, phases.healthy);
  else reportKeptWalStorage(pass);
  flushStatus(pass, "every instance is as the cluster asks for");
  const next = { requeueAfterMs: healthyLookMs, because: "the cluster is healthy" };
  return { ...finish(pass, next, true), settled: true };
}

/** A healthy cluster is looked at this often, for what no event tells: certificates that age, lag that grows. */
const healthyLookMs = 60_000;

/** Who is primary comes before everything else: no missing object or broken image may stand in the way of a failover. */
function planAvailability(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  recordInstanceReport(pass, sorted);
  return runStages(pass, [
    () => waitForSinglePrimary(sorted),
    (it) => {
      if (primaryState(it).kind === "stable") planMetadataRepair(it);
      return null;
    },
    planWordRemoval,
    planTargetRepair,
    (it) => healMeanwhile(it, waitForCommunication(it, sorted)),
    (it) => healMeanwhile(it, waitForDiskSpaceUnlessGrowing(it, sorted)),
    (it) => planReplicaTransition(it, sorted),
    (it) => healMeanwhile(it, waitForReadiness(it, sorted)),
    (it) => healMeanwhile(it, planHibernation(it)),
    (it) => planFailover(it, primaryState(it), sorted),
  ]);
}

/**
 * What does not depend on the instances goes on while a pass waits for them. They may be silent because they may not read
 * a Secret that the role does not name yet, or because there is none, which is then told instead; and standbys may be
 * unready or silent because their primary is gone, whose pod has to come back.
 */
function healMeanwhile(pass: Pass, wait: Wait | null): Wait | null {
  if (!wait) return null;
  const trouble = planAuxiliaryObjects(pass);
  if (!isAskedToHibernate(pass) && primaryState(pass).kind === "stable") planPrimaryReattach(pass, volumesOf(pass));
  return trouble ?? wait;
}

/** Volumes may grow while PostgreSQL stands still for lack of space: that is what heals it. */
function waitForDiskSpaceUnlessGrowing(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  const wait = waitForDiskSpace(pass, sorted);
  if (wait) planVolumeChanges(pass);
  return wait;
}

function planResources(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  return runStages(pass, [
    planEndedPods,
    (it) => planDeadVolumes(it, sorted),
    planUnschedulablePods,
    planStuckJobs,
    planUnrecoverable,
    planScaleDownLimit,
    planIdleScaleDown,
    planUnfinishedRemoval,
    planVolumeChanges,
    (it) => {
      planReadyVolumes(it, volumesOf(it));
      return null;
    },
    planFirstPrimary,
    // A clone that failed must not cost another instance its pod.
    (it) => planReattach(it, volumesOf(it)),
    waitForFailedJobs,
    planNewReplicas,
    waitForActivePods,
    waitForLivePods,
    waitForRunningJobs,
    waitForReports,
    (it) => planScaleDown(it, sorted),
    (it) => waitForAnswers(it, sorted),
    (it) => planConfigurationGate(it, sorted),
    (it) => planRollout(it, sorted),
    (it) => planManagerUpgrade(it, sorted),
    (it) => {
      if (it.status.phase === phases.inPlacePrimaryRestart) {
        return { requeueAfterMs: 1_000, because: "the primary restarts in place" };
      }
      planFinishedJobs(it);
      return null;
    },
  ]);
}

function runStages(pass: Pass, stages: readonly ((pass: Pass) => Wait | null)[]): Wait | null {
  for (const stage of stages) {
    const wait = stage(pass);
    if (wait) return wait;
  }
  return null;
}

function isDisabled(cluster: Cluster): boolean {
  return cluster.metadata.annotations?.[annotations.reconciliationLoop] === "disabled";
}

function volumesOf(pass: Pass) {
  const { pods, jobs, volumes } = pass.observed;
  return classifyVolumes({ cluster: pass.cluster, pods, jobs }, volumes);
}

function waitForLivePods(pass: Pass): Wait | null {
  const { pods } = pass.observed;
  if (pods.length === 0 || pods.some(isAlivePod)) return null;
  const because = "No pods are active, the cluster needs manual intervention ";
  setPhase(pass, phases.unrecoverable, because);
  return { requeueAfterMs: 1_000, because };
}

function waitForReports(pass: Pass): Wait | null {
  const reporting = reportingInstances(pass.observed.instances).length;
  const present = pass.status.instances ?? 0;
  if (reporting >= present) return null;
  return { requeueAfterMs: 1_000, because: `${reporting} of ${present} instances report` };
}

function waitForAnswers(pass: Pass, sorted: readonly PolledInstance[]): Wait | null {
  const silent = sorted.find((it) => it.kind === "silent");
  if (silent) return { requeueAfterMs: 1_000, because: `instance ${silent.name} does not answer: ${silent.reason}` };
  const { readyInstances = 0, instances = 0 } = pass.status;
  if (readyInstances === instances && instances === sorted.length && instances === pass.cluster.spec.instances)
    return null;
  return { requeueAfterMs: 1_000, because: `${readyInstances} of ${pass.cluster.spec.instances} instances are ready` };
}

function finish(pass: Pass, wait: Wait, complete: boolean): ClusterPlan {
  const times = [wait.requeueAfterMs, pass.lookAgainMs].filter((it) => it !== undefined);
  return {
    actions: pass.actions,
    status: pass.status,
    because: wait.because,
    complete,
    ...(times.length > 0 ? { requeueAfterMs: Math.min(...times) } : {}),
  };
}
