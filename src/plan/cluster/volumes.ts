import type { Cluster } from "../../api/generated/cluster.ts";
import type { Job, PersistentVolumeClaim, Pod } from "../../api/generated/kubernetes.ts";
import { parseNodeSerial, parsePvcStatus } from "../../api/markers.ts";
import { instanceName } from "../../api/names.ts";
import { expectedPvcs } from "../../build/pvcs.ts";
import { isJobComplete } from "./jobs.ts";
import { claimNames } from "./pods.ts";

/** The volumes that share a serial: what is left of, or will become, one instance. */
export interface VolumeGroup {
  instance: string;
  serial: number;
  volumes: PersistentVolumeClaim[];
  /** Names that the instance should have and that no volume of the group carries. */
  missing: string[];
}

export type VolumeClass = "ignored" | "unusable" | "resizing" | "healthy" | "dangling" | "initializing";

export interface ClassifiedVolumes {
  /** Sorted by name of the instance, as text. */
  groups: VolumeGroup[];
  /** Sorted names of the volumes of each class. */
  byClass: Record<VolumeClass, string[]>;
}

type VolumeContext = { cluster: Cluster; pods: readonly Pod[]; jobs: readonly Job[] };

/** Sorts the owned volumes into instances, and tells what state each volume is in (reference: cluster controller §5.7). */
export function classifyVolumes(context: VolumeContext, volumes: readonly PersistentVolumeClaim[]): ClassifiedVolumes {
  const groups = groupVolumes(context.cluster, volumes);
  const byClass: Record<VolumeClass, string[]> = {
    ignored: [],
    unusable: [],
    resizing: [],
    healthy: [],
    dangling: [],
    initializing: [],
  };
  for (const group of groups) {
    for (const volume of group.volumes) {
      byClass[classOf(context, group, volume)].push(volume.metadata.name ?? "");
    }
  }
  for (const names of Object.values(byClass)) names.sort();
  return { groups, byClass };
}

/** Whether a volume is being removed. */
export function isTerminating(volume: PersistentVolumeClaim): boolean {
  return volume.metadata.deletionTimestamp !== undefined;
}

function groupVolumes(cluster: Cluster, volumes: readonly PersistentVolumeClaim[]): VolumeGroup[] {
  const groups = new Map<number, VolumeGroup>();
  for (const volume of volumes) {
    const serial = parseNodeSerial(volume);
    const phase = volume.status?.phase ?? "Pending";
    if (serial === undefined || isTerminating(volume) || (phase !== "Pending" && phase !== "Bound")) continue;
    const instance = instanceName(cluster.metadata.name ?? "", serial);
    const group = groups.get(serial) ?? { instance, serial, volumes: [], missing: [] };
    group.volumes.push(volume);
    groups.set(serial, group);
  }
  for (const group of groups.values()) {
    const present = new Set(group.volumes.map((it) => it.metadata.name));
    group.missing = expectedNames(cluster, group.instance).filter((name) => !present.has(name));
  }
  return [...groups.values()].sort((a, b) => (a.instance < b.instance ? -1 : 1));
}

function expectedNames(cluster: Cluster, instance: string): string[] {
  return expectedPvcs(cluster, instance).map((it) => it.name);
}

function classOf(context: VolumeContext, group: VolumeGroup, volume: PersistentVolumeClaim): VolumeClass {
  const name = volume.metadata.name ?? "";
  if (parsePvcStatus(volume) === "ignored") return "ignored";
  const isExpected = expectedNames(context.cluster, group.instance).includes(name);
  if (group.missing.length > 0 || !isExpected) return "unusable";
  const isResizing = volume.status?.conditions?.some((it) => it.type === "Resizing" && it.status === "True") ?? false;
  if (context.pods.some((pod) => claimNames(pod.spec).includes(name))) return isResizing ? "resizing" : "healthy";
  if (isResizing) return "dangling";
  const isClaimedByJob = context.jobs.some(
    (job) => !isJobComplete(job) && claimNames(job.spec?.template.spec).includes(name),
  );
  return isClaimedByJob ? "initializing" : "dangling";
}
