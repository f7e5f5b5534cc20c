import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import type { PolledInstance } from "../cluster/observed.ts";
import { backupTarget, containerId } from "./choose-pod.ts";

/** What became of a backup that was started (reference: backups §4.6). */
export type Validity =
  | { kind: "running"; instance: PolledInstance }
  /** Its pod or container is gone, and with it whoever took it. */
  | { kind: "replaced"; reason: string }
  /** The container lives but forgot it. */
  | { kind: "lost"; message: string };

export function judgeStarted(backup: Backup, cluster: Cluster, instances: readonly PolledInstance[]): Validity {
  const noted = backup.status?.instanceID;
  const podName = noted?.podName ?? "";
  const instance = instances.find((it) => it.name === podName);
  if (!instance) return { kind: "replaced", reason: `pod ${podName || "of the backup"} is gone` };
  if (noted?.ContainerID !== containerId(instance.pod)) {
    return { kind: "replaced", reason: `the container of pod ${podName} was replaced` };
  }
  if (backupTarget(backup, cluster) === "primary" && cluster.status?.targetPrimary !== podName) {
    return { kind: "replaced", reason: `${podName} is not the primary any more` };
  }
  // Silence says nothing about the backup.
  if (instance.kind === "silent") return { kind: "running", instance };
  const session = instance.status.sessionID;
  if (session && session !== (noted?.sessionID ?? "")) {
    return { kind: "lost", message: `instance manager was restarted during backup on pod ${podName}` };
  }
  return { kind: "running", instance };
}
