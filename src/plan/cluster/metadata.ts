import { parseNodeSerial } from "../../api/markers.ts";
import { repairPodMetadata, repairPvcMetadata } from "../../build/metadata-repair.ts";
import { refTo } from "./actions.ts";
import { draftCluster, type Pass } from "./pass.ts";
import { claimNames, isActivePod } from "./pods.ts";

/**
 * Puts labels and annotations of pods and volumes right (reference: cluster controller §3.3). It needs no status call, so
 * that a new primary gets its label, and with it the read-write Service, as soon as `currentPrimary` is written.
 */
export function planMetadataRepair(pass: Pass): void {
  const cluster = draftCluster(pass);
  const { context } = pass.observed.operator;
  const current = pass.status.currentPrimary;
  const pods = [...pass.observed.pods].sort(
    (a, b) => Number(b.metadata.name === current) - Number(a.metadata.name === current),
  );
  for (const pod of pods) {
    if (pod.metadata.deletionTimestamp) continue;
    const patch = repairPodMetadata(cluster, pod, context, { active: isActivePod(pod) });
    if (!patch) continue;
    const reason = `labels or annotations of pod ${pod.metadata.name} differ from what the cluster asks for`;
    pass.actions.push({ kind: "patch", target: refTo(pod), patch: { ...patch }, bestEffort: false, reason });
  }
  for (const volume of pass.observed.volumes) {
    if (volume.metadata.deletionTimestamp) continue;
    const user = pass.observed.pods.find((pod) => claimNames(pod.spec).includes(volume.metadata.name ?? ""));
    const serial = user ? parseNodeSerial(user) : undefined;
    const patch = repairPvcMetadata(cluster, volume, context, serial === undefined ? {} : { serial });
    if (!patch) continue;
    const reason = `labels or annotations of volume ${volume.metadata.name} differ from what the cluster asks for`;
    pass.actions.push({ kind: "patch", target: refTo(volume), patch: { ...patch }, bestEffort: false, reason });
  }
}
