import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { Pod } from "../../api/generated/kubernetes.ts";
import { sortInstances } from "../cluster/election.ts";
import type { AnsweredInstance, PolledInstance } from "../cluster/observed.ts";
import { postgresContainer } from "../cluster/pods.ts";

/** The pod a backup is taken from, or why none is there now. */
export type PodChoice =
  | { kind: "chosen"; instance: AnsweredInstance }
  | { kind: "none"; event: "FindingPod" | "BackupPending"; reason: string };

/** Where a Backup asks to be taken. @default prefer-standby */
export function backupTarget(backup: Backup, cluster: Cluster): "primary" | "prefer-standby" {
  return backup.spec.target ?? cluster.spec.backup?.target ?? "prefer-standby";
}

/**
 * Elects the pod of a backup (reference: backups §4.5). Of the standbys the one with the most WAL is taken, and only such
 * as stream from the primary: the first by name may be hours behind.
 */
export function choosePod(backup: Backup, cluster: Cluster, instances: readonly PolledInstance[]): PodChoice {
  const primaryName = cluster.status?.targetPrimary;
  const image = cluster.status?.image;
  if (!primaryName || !image) {
    return { kind: "none", event: "FindingPod", reason: "the cluster has no primary or no image yet" };
  }
  const fit = instances.filter((it) => runsImage(it.pod, image));
  if (backupTarget(backup, cluster) === "prefer-standby") {
    const standby = sortInstances(fit).find(
      (it): it is AnsweredInstance =>
        it.kind === "answered" &&
        it.name !== primaryName &&
        it.ready &&
        !it.status.isPrimary &&
        it.status.isWalReceiverActive &&
        !it.status.mightBeUnavailable,
    );
    if (standby) return { kind: "chosen", instance: standby };
  }
  const primary = fit.find((it) => it.name === primaryName);
  if (!primary) {
    const reason = `the primary ${primaryName} has no active pod with image ${image}`;
    return { kind: "none", event: "FindingPod", reason };
  }
  if (!primary.ready) return { kind: "none", event: "BackupPending", reason: `pod ${primaryName} is not ready` };
  if (primary.kind === "silent") {
    return {
      kind: "none",
      event: "BackupPending",
      reason: `instance ${primaryName} does not answer: ${primary.reason}`,
    };
  }
  return { kind: "chosen", instance: primary };
}

function runsImage(pod: Pod, image: string): boolean {
  return pod.spec?.containers.find((it) => it.name === postgresContainer)?.image === image;
}

/** Runtime's ID of the pod's container with PostgreSQL; empty before it started. */
export function containerId(pod: Pod): string {
  return pod.status?.containerStatuses?.find((it) => it.name === postgresContainer)?.containerID ?? "";
}
