import { clusterName } from "../../api/cluster-facts.ts";
import type { PersistentVolumeClaim, Pod } from "../../api/generated/kubernetes.ts";
import { annotations, labels } from "../../api/labels.ts";
import { parseNodeSerial } from "../../api/markers.ts";
import { childNames, instanceName } from "../../api/names.ts";
import { inheritedMetadata, ownerReference } from "../../build/metadata.ts";
import { refTo } from "./actions.ts";
import { conditionTypes, withCondition } from "./conditions.ts";
import { flushStatus, type Pass, setTargetPrimary, type Wait } from "./pass.ts";
import { roleOf } from "./pods.ts";

/** What older tools left on volumes and what means nothing once they belong to a cluster again. */
const leftovers = [
  "cnpg.io/hibernateClusterManifest",
  "cnpg.io/hibernatePgControlData",
  "cnpg.io/clusterManifest",
  "cnpg.io/pgControldata",
];

/**
 * A new cluster takes over volumes of its name that belong to nobody, for example those of a backup tool or of a cluster
 * whose definition was lost (reference: cluster controller §5.11). It goes on until every one is taken, also when the
 * operator ends in between; a cluster that ever had a primary adopts nothing.
 */
export function planAdoption(pass: Pass): Wait | null {
  const orphans = pass.observed.orphanVolumes.filter((it) => parseNodeSerial(it) !== undefined);
  if (orphans.length === 0 || pass.status.currentPrimary) return null;
  const starting = pass.observed.orphanPods.find(isInitializing);
  if (starting) {
    return { requeueAfterMs: 5_000, because: `init containers of pod ${starting.metadata.name} have not ended yet` };
  }
  for (const pod of pass.observed.orphanPods) {
    const reason = `pod ${pod.metadata.name} uses volumes that are being adopted and belongs to nobody`;
    pass.actions.push({ kind: "delete", target: refTo(pod), propagation: "Background", bestEffort: false, reason });
  }
  planUnfencing(pass);
  planServiceRemoval(pass);
  const primary = pass.status.targetPrimary || instanceName(clusterName(pass.cluster), primarySerial(orphans));
  const because = `volumes of ${primary} and others are being adopted`;
  if (pass.status.targetPrimary !== primary) setTargetPrimary(pass, primary);
  const message = "Cluster has been bootstrapped";
  const type = conditionTypes.initialized;
  pass.status = withCondition(pass.status, { type, status: "True", reason: "BootstrapCompleted", message }, pass.now);
  flushStatus(pass, because);
  for (const volume of orphans) planVolumeAdoption(pass, volume);
  return { requeueAfterMs: 1_000, because };
}

function isInitializing(pod: Pod): boolean {
  const runOnce = (pod.spec?.initContainers ?? []).filter((it) => it.restartPolicy !== "Always").map((it) => it.name);
  const ended = (pod.status?.initContainerStatuses ?? []).filter((it) => it.state?.terminated?.exitCode === 0);
  return !runOnce.every((name) => ended.some((it) => it.name === name));
}

function primarySerial(volumes: readonly PersistentVolumeClaim[]): number {
  const labelled = volumes.find((it) => roleOf(it) === "primary");
  const serials = (labelled ? [labelled] : volumes).map((it) => parseNodeSerial(it) ?? 0);
  return Math.max(...serials);
}

function planUnfencing(pass: Pass): void {
  if (pass.cluster.metadata.annotations?.[annotations.fencedInstances] === undefined) return;
  const patch = { metadata: { annotations: { [annotations.fencedInstances]: null } } };
  pass.actions.push({ kind: "patchCluster", patch, reason: "an adopted cluster starts without fences" });
}

function planServiceRemoval(pass: Pass): void {
  const names = childNames(clusterName(pass.cluster));
  for (const name of [names.any, names.r, names.ro, names.rw]) {
    const live = pass.observed.services.get(name);
    if (!live || (live.metadata.ownerReferences ?? []).length > 0 || live.metadata.deletionTimestamp) continue;
    if (live.metadata.labels?.[labels.cluster] !== clusterName(pass.cluster)) continue;
    const reason = `service ${name} belongs to nobody and is made anew`;
    pass.actions.push({ kind: "delete", target: refTo(live), propagation: "Background", bestEffort: false, reason });
  }
}

function planVolumeAdoption(pass: Pass, volume: PersistentVolumeClaim): void {
  const inherited = inheritedMetadata(pass.cluster, pass.observed.operator.context);
  const dropped = Object.fromEntries(leftovers.map((key) => [key, null]));
  const patch = {
    metadata: {
      ownerReferences: [ownerReference(pass.cluster)],
      labels: inherited.labels,
      annotations: { ...dropped, ...inherited.annotations, [annotations.pvcStatus]: "ready" },
    },
  };
  const reason = `volume ${volume.metadata.name} carries the cluster's name and belongs to nobody`;
  pass.actions.push({ kind: "patch", target: refTo(volume, { content: true }), patch, bestEffort: false, reason });
}
