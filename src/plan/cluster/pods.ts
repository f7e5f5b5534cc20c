import { exitCodeDiskFull } from "../../api/constants.ts";
import type { ContainerStatus, Pod } from "../../api/generated/kubernetes.ts";
import { labels } from "../../api/labels.ts";

/** Name of the container that runs PostgreSQL. */
export const postgresContainer = "postgres";

/** Whether the pod runs or is about to: neither pending, ended nor terminating. */
export function isActivePod(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return !pod.metadata.deletionTimestamp && phase !== "Pending" && phase !== "Succeeded" && phase !== "Failed";
}

/** Whether the pod's condition Ready is true. */
export function isReadyPod(pod: Pod): boolean {
  return pod.status?.conditions?.some((it) => it.type === "Ready" && it.status === "True") ?? false;
}

/** Whether the pod is active and none of its containers waits in a crash loop. */
export function isAlivePod(pod: Pod): boolean {
  if (!isActivePod(pod)) return false;
  if (pod.status?.phase !== "Running") return true;
  const statuses = [...(pod.status.initContainerStatuses ?? []), ...(pod.status.containerStatuses ?? [])];
  return !statuses.some((it) => it.state?.waiting?.reason === "CrashLoopBackOff");
}

/** Whether the pod has ended by itself and only its object is left. */
export function isEndedPod(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return !pod.metadata.deletionTimestamp && (phase === "Succeeded" || phase === "Failed");
}

/** Scheduler's message when the pod can be placed nowhere, else `undefined`. */
export function unschedulableMessage(pod: Pod): string | undefined {
  if (pod.status?.phase !== "Pending" || pod.metadata.deletionTimestamp) return undefined;
  const condition = pod.status.conditions?.find((it) => it.type === "PodScheduled" && it.status === "False");
  return condition?.reason === "Unschedulable" ? (condition.message ?? "no node fits") : undefined;
}

/** Whether PostgreSQL stopped because its WAL volume is full: ended with that code and not come back since. */
export function isStoppedByFullDisk(pod: Pod): boolean {
  const status = pod.status?.containerStatuses?.find((it) => it.name === postgresContainer);
  if (!status) return false;
  if (status.state?.terminated) return status.state.terminated.exitCode === exitCodeDiskFull;
  // Started means that PostgreSQL was up since: what is wrong now is something else, however it ended before.
  const hasComeBack = status.ready || status.started === true;
  return !hasComeBack && status.lastState?.terminated?.exitCode === exitCodeDiskFull;
}

const hopelessWaits = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "InvalidImageName",
  "ErrImageNeverPull",
  "CreateContainerConfigError",
  "CreateContainerError",
  "RunContainerError",
]);

/** In words, why a pod that has not started will not start by itself; `undefined` when there is no sign of that. */
export function startProblem(pod: Pod): { reason: string; message: string } | undefined {
  const unschedulable = unschedulableMessage(pod);
  if (unschedulable) {
    return { reason: "Unschedulable", message: `pod ${pod.metadata.name} cannot be scheduled: ${unschedulable}` };
  }
  const statuses: ContainerStatus[] = [
    ...(pod.status?.initContainerStatuses ?? []),
    ...(pod.status?.containerStatuses ?? []),
  ];
  for (const status of statuses) {
    const waiting = status.state?.waiting;
    if (!waiting?.reason || !hopelessWaits.has(waiting.reason)) continue;
    const detail = waiting.message ? `: ${waiting.message}` : "";
    return {
      reason: waiting.reason,
      message: `container ${status.name} of pod ${pod.metadata.name} cannot start image ${status.image}, ${waiting.reason}${detail}`,
    };
  }
  return undefined;
}

/** Role that the pod's or volume's labels tell; readers look at the old key first. */
export function roleOf(object: { metadata: { labels?: Record<string, string> } }): string | undefined {
  return object.metadata.labels?.[labels.legacyRole] ?? object.metadata.labels?.[labels.instanceRole];
}

/** Names of the volumes claimed by a pod template. */
export function claimNames(
  spec: { volumes?: { persistentVolumeClaim?: { claimName: string } }[] } | undefined,
): string[] {
  return (spec?.volumes ?? []).flatMap((it) => (it.persistentVolumeClaim ? [it.persistentVolumeClaim.claimName] : []));
}
