import type { Backup } from "../../api/generated/backup.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";

/** Why a Backup can never be taken as things are; `event` is the reason of the event that tells it. */
export interface Obstacle {
  event: string;
  message: string;
  /** A reason that says the opposite, under which CloudNativePG tells it: told too, for those who look for it. */
  formerEvent?: string;
}

/** The method of a Backup, with the default of the API. */
export function backupMethod(backup: Backup): "barmanObjectStore" | "volumeSnapshot" | "plugin" {
  return backup.spec.method ?? "barmanObjectStore";
}

/** What the cluster lacks for the Backup (reference: backups §4.4); `null` when it can be tried. */
export function findObstacle(backup: Backup, cluster: Cluster, facts: { volumeSnapshots: boolean }): Obstacle | null {
  if (cluster.metadata.annotations?.[annotations.hibernation] === "on") {
    return { event: "ClusterIsHibernated", message: "cannot backup a hibernated cluster" };
  }
  const method = backupMethod(backup);
  if (method === "plugin") return findPluginObstacle(backup, cluster);
  const section = cluster.spec.backup;
  if (!section) {
    const message = "cannot proceed with the backup as the cluster has no backup section";
    return { event: "ClusterHasNoBackupSection", message, formerEvent: "ClusterHasBackupConfigured" };
  }
  if (method === "barmanObjectStore") {
    if (section.barmanObjectStore) return null;
    const message = "no barmanObjectStore section defined on the target cluster";
    return { event: "ClusterHasNoBarmanSection", message };
  }
  if (!facts.volumeSnapshots) {
    const message = "cannot proceed with the backup as the Kubernetes cluster has no VolumeSnapshot support";
    return { event: "ClusterHasNoVolumeSnapshotCRD", message };
  }
  if (section.volumeSnapshot) return null;
  const message = "no volumeSnapshot section defined on the target cluster";
  return { event: "ClusterHasNoVolumeSnapshotSection", message };
}

function findPluginObstacle(backup: Backup, cluster: Cluster): Obstacle | null {
  const event = "ClusterHasNoBackupExecutorPlugin";
  const listed = cluster.spec.plugins ?? [];
  if (listed.length === 0) {
    return { event, message: "cannot proceed with the backup as the cluster has no plugin configured" };
  }
  // What the plugin can do in the pods only the pods know: its part in the operator says nothing of backups.
  const name = backup.spec.pluginConfiguration?.name ?? "";
  if (listed.some((plugin) => plugin.name === name && (plugin.enabled ?? true))) return null;
  // The first words are those that a pod without the plugin has for it.
  const message = `requested plugin is not available: ${name}; enable it in spec.plugins of the cluster, or name another`;
  return { event, message };
}
