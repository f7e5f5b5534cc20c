import type { Job, PersistentVolumeClaim } from "../../api/generated/kubernetes.ts";
import { labels } from "../../api/labels.ts";
import { claimNames } from "./pods.ts";

/** Whether a Job has done all that was asked of it. */
export function isJobComplete(job: Job): boolean {
  return (job.status?.succeeded ?? 0) >= (job.spec?.completions ?? 1);
}

/** Whether a Job has given up. */
export function isJobFailed(job: Job): boolean {
  return job.status?.conditions?.some((it) => it.type === "Failed" && it.status === "True") ?? false;
}

/** Instance that a Job prepares. */
export function instanceOfJob(job: Job): string | undefined {
  return job.metadata.labels?.[labels.instanceName];
}

/**
 * Whether a completed Job worked on this very volume. A Job that ended before the volume was made belongs to a
 * removed instance of the same name: its success says nothing about the new, still empty volume.
 */
export function hasPrepared(job: Job, volume: PersistentVolumeClaim): boolean {
  if (!isJobComplete(job)) return false;
  if (!claimNames(job.spec?.template.spec).includes(volume.metadata.name ?? "")) return false;
  const ended = Date.parse(job.status?.completionTime ?? "");
  const made = Date.parse(volume.metadata.creationTimestamp ?? "");
  return Number.isNaN(ended) || Number.isNaN(made) || made <= ended;
}
