import { clusterName } from "../api/cluster-facts.ts";
import type { Cluster } from "../api/generated/cluster.ts";
import type { ObjectMeta, PersistentVolumeClaim, Pod } from "../api/generated/kubernetes.ts";
import { annotations, labels } from "../api/labels.ts";
import { parseNodeSerial } from "../api/markers.ts";
import { instanceName } from "../api/names.ts";
import { appArmorAnnotations } from "./containers.ts";
import type { BuildContext } from "./context.ts";
import { inheritedMetadata, volumeLabels } from "./metadata.ts";
import { expectedPvcs, pvcLabels } from "./pvcs.ts";

type StringMap = Record<string, string>;

/** Body of a merge patch that brings labels and annotations up to date; keys that are already right are left out. */
export interface MetadataPatch {
  metadata: { labels?: StringMap; annotations?: StringMap };
}

/** What must change on an instance's pod, or null. `active` tells whether its role labels may be written. */
export function repairPodMetadata(
  cluster: Cluster,
  pod: Pod,
  context: BuildContext,
  options: { active: boolean },
): MetadataPatch | null {
  const name = pod.metadata.name ?? "";
  const inherited = inheritedMetadata(cluster, context);
  const containers = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])];
  return metadataPatch(pod.metadata, {
    labels: {
      ...inherited.labels,
      [labels.instanceName]: name,
      [labels.podRole]: "instance",
      ...(options.active ? roleLabels(cluster, name) : {}),
    },
    annotations: {
      // A pod keeps the version that made it: what it runs is replaced by a rollout, not by an annotation.
      ...withoutVersion(inherited.annotations),
      ...appArmorAnnotations(cluster, containers),
    },
  });
}

/** What must change on an instance's volume, or null; `serial` is that of the pod that uses it, when there is one. */
export function repairPvcMetadata(
  cluster: Cluster,
  pvc: PersistentVolumeClaim,
  context: BuildContext,
  options: { serial?: number } = {},
): MetadataPatch | null {
  const inherited = inheritedMetadata(cluster, context);
  const serial = options.serial ?? parseNodeSerial(pvc);
  const instance = serial === undefined ? undefined : instanceName(clusterName(cluster), serial);
  const expected = instance
    ? expectedPvcs(cluster, instance).find((candidate) => candidate.name === pvc.metadata.name)
    : undefined;
  return metadataPatch(pvc.metadata, {
    labels: {
      ...volumeLabels,
      ...inherited.labels,
      ...(expected && instance ? pvcLabels(expected, instance) : {}),
      ...(instance ? roleLabels(cluster, instance) : {}),
    },
    annotations: {
      ...inherited.annotations,
      ...(serial === undefined ? {} : { [annotations.nodeSerial]: String(serial) }),
    },
  });
}

/** Live metadata with the labels and annotations that a child should carry laid over it, or null when it has them all. */
export function mergeMetadata(live: ObjectMeta, proposed: ObjectMeta): ObjectMeta | null {
  const patch = metadataPatch(live, { labels: proposed.labels ?? {}, annotations: proposed.annotations ?? {} });
  if (!patch) return null;
  return {
    ...live,
    labels: { ...live.labels, ...patch.metadata.labels },
    annotations: { ...live.annotations, ...patch.metadata.annotations },
  };
}

/** Labels for the part an instance plays; both keys are always written together. Empty before there is a primary. */
export function roleLabels(cluster: Cluster, instance: string): StringMap {
  const primary = cluster.status?.currentPrimary;
  if (!primary) return {};
  const role = primary === instance ? "primary" : "replica";
  return { [labels.legacyRole]: role, [labels.instanceRole]: role };
}

/** Patch that marks a primary that is being replaced, so that no Service sends clients to it. */
export const unhealthyPatch: MetadataPatch = {
  metadata: { labels: { [labels.legacyRole]: "unhealthy", [labels.instanceRole]: "unhealthy" } },
};

/** Patch that notes the state of a volume. */
export function pvcStatusPatch(status: "initializing" | "ready"): MetadataPatch {
  return { metadata: { annotations: { [annotations.pvcStatus]: status } } };
}

function metadataPatch(live: ObjectMeta, wanted: { labels: StringMap; annotations: StringMap }): MetadataPatch | null {
  const changedLabels = changedKeys(live.labels, wanted.labels);
  const changedAnnotations = changedKeys(live.annotations, wanted.annotations);
  if (!changedLabels && !changedAnnotations) return null;
  return {
    metadata: {
      ...(changedLabels ? { labels: changedLabels } : {}),
      ...(changedAnnotations ? { annotations: changedAnnotations } : {}),
    },
  };
}

function changedKeys(live: StringMap | undefined, wanted: StringMap): StringMap | undefined {
  const changed = Object.entries(wanted).filter(([key, value]) => live?.[key] !== value);
  return changed.length > 0 ? Object.fromEntries(changed) : undefined;
}

function withoutVersion(map: StringMap): StringMap {
  const { [annotations.operatorVersion]: _, ...rest } = map;
  return rest;
}
