import { boolean, enumOf, object, string, stringMap, use } from "../parts/builders.ts";
import { backupTarget, onlineConfiguration } from "../shared/backup-request.ts";
import { barmanObjectStore, retentionPolicy } from "../shared/object-store.ts";

const volumeSnapshot = object("How backups by volume snapshot are taken.", {
  annotations: stringMap("Annotations of the snapshots."),
  className: string("Snapshot class of the data volume."),
  labels: stringMap("Labels of the snapshots."),
  online: boolean("Keep PostgreSQL running while the snapshots are taken.", { default: true }),
  onlineConfiguration: use("How a hot backup runs.", onlineConfiguration, {
    default: { waitForArchive: true, immediateCheckpoint: false },
  }),
  snapshotOwnerReference: enumOf("Object whose deletion takes the snapshots with it.", ["none", "cluster", "backup"], {
    default: "none",
  }),
  tablespaceClassName: stringMap(
    "Snapshot class of a tablespace's volume, by tablespace; the data volume's by default.",
  ),
  walClassName: string("Snapshot class of the WAL volume; the data volume's by default."),
});

/** `spec.backup`: how backups of the cluster are taken and kept. */
export const backup = object("How backups of the cluster are taken and kept.", {
  barmanObjectStore,
  retentionPolicy,
  target: backupTarget("Instance that takes backups.", "prefer-standby"),
  volumeSnapshot,
});
