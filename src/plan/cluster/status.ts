import { clusterName, isReplicaCluster } from "../../api/cluster-facts.ts";
import type { Pod } from "../../api/generated/kubernetes.ts";
import { labels } from "../../api/labels.ts";
import { childNames } from "../../api/names.ts";
import { certificatePlan } from "./certificates.ts";
import {
  type ClusterStatus,
  conditionTypes,
  findCondition,
  isInitialized,
  validConditions,
  withCondition,
} from "./conditions.ts";
import type { Pass } from "./pass.ts";
import { isActivePod, isReadyPod } from "./pods.ts";
import { configMapVersions, poolerIntegrations, secretVersions } from "./resource-versions.ts";
import { planTopology } from "./topology.ts";
import type { ClassifiedVolumes } from "./volumes.ts";

/**
 * First stage of every pass: rebuilds the part of the status that follows from the objects alone
 * (reference: cluster controller §7.1), before any instance is asked.
 */
export function recomputeStatus(pass: Pass, volumes: ClassifiedVolumes): void {
  const { cluster, observed } = pass;
  const name = clusterName(cluster);
  const instanceNames = volumes.groups.map((it) => it.instance).sort();
  const { byClass } = volumes;
  const fields: ClusterStatus = {
    instances: volumes.groups.length,
    readyInstances: observed.pods.filter((pod) => isActivePod(pod) && isReadyPod(pod)).length,
    selector: `${labels.cluster}=${name},${labels.podRole}=instance`,
    instanceNames,
    instancesStatus: instancesStatus(observed.pods),
    pvcCount: observed.volumes.length,
    jobCount: observed.jobs.length,
    danglingPVC: byClass.dangling,
    resizingPVC: byClass.resizing,
    initializingPVC: byClass.initializing,
    healthyPVC: byClass.healthy,
    unusablePVC: byClass.unusable,
    topology: planTopology(pass),
    writeService: childNames(name).rw,
    readService: childNames(name).r,
    certificates: certificatePlan(pass).status,
    secretsResourceVersion: secretVersions(cluster, observed),
    configMapResourceVersion: configMapVersions(cluster, observed),
    poolerIntegrations: poolerIntegrations(cluster, observed),
    cloudNativePGCommitHash: observed.operator.commitHash,
    cloudNativePGOperatorHash: observed.operator.managerHash,
    availableArchitectures: observed.operator.architectures.map((it) => ({ ...it })),
    operatorCertificateFingerprint: observed.operator.certificateFingerprint,
    onlineUpdateEnabled: observed.operator.onlineUpdateEnabled,
    podSelectorRefs: observed.selectedPods.map(({ name, ips }) => (ips.length > 0 ? { name, ips } : { name })),
    switchReplicaClusterStatus: pass.status.switchReplicaClusterStatus ?? {},
    managedRolesStatus: pass.status.managedRolesStatus ?? {},
  };
  pass.status = withoutEmptyLists({ ...pass.status, ...fields });
  if (!isReplicaCluster(cluster)) delete pass.status.demotionToken;
  if (cluster.spec.replica && !cluster.spec.replica.promotionToken) delete pass.status.lastPromotionToken;
  if (pass.status.conditions) pass.status = { ...pass.status, conditions: validConditions(pass.status.conditions) };
  markInitialized(pass);
}

/** Names of the pods by what can be said of them without asking; terminating pods are left out. */
export function instancesStatus(pods: readonly Pod[]): Record<string, string[]> {
  const result: Record<string, string[]> = {};
  for (const pod of pods) {
    if (pod.metadata.deletionTimestamp) continue;
    const key = !isActivePod(pod) ? "failed" : isReadyPod(pod) ? "healthy" : "replicating";
    result[key] = [...(result[key] ?? []), pod.metadata.name ?? ""];
  }
  return result;
}

function markInitialized(pass: Pass): void {
  const type = conditionTypes.initialized;
  if ((pass.status.instances ?? 0) > 0) {
    const message = "Cluster has been bootstrapped";
    pass.status = withCondition(pass.status, { type, status: "True", reason: "BootstrapCompleted", message }, pass.now);
  } else if (!findCondition(pass.status, type) && !isInitialized(pass.status)) {
    const message = "Cluster has not been bootstrapped yet";
    pass.status = withCondition(pass.status, { type, status: "False", reason: "BootstrapPending", message }, pass.now);
  }
}

function withoutEmptyLists(status: ClusterStatus): ClusterStatus {
  const entries = Object.entries(status).filter(([, value]) => !(Array.isArray(value) && value.length === 0));
  return Object.fromEntries(entries) as ClusterStatus;
}
