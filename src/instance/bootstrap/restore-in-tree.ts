// A base backup out of an archive that the Cluster itself describes. Load this module by a dynamic import: it brings the clients
// of the stores with it.
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import { checkWalOfBackup, chooseBaseBackup } from "../../archive/base/find-base-backup.ts";
import { restoreBaseBackup } from "../../archive/base/restore-base-backup.ts";
import { checkEmptyArchive } from "../../archive/empty-archive.ts";
import { parseBackupTarget } from "../../barman/backup-target.ts";
import { type InTreeArchive, ownArchive } from "../../plan/instance/wal-sources.ts";
import { createBulkFiles } from "../../store/bulk-files.ts";
import { createTreeFiles } from "../../store/tree-files.ts";
import type { InstanceContext } from "../instance-context.ts";
import { moveWalToVolume } from "../reconcile/wal-volume.ts";
import type { ArchivePlaces } from "../wal/archive-places.ts";

/** Finds the backup for the recovery target, checks that its WAL is there, and fills PGDATA with it. */
export async function restoreFromArchive(
  context: InstanceContext,
  cluster: Cluster,
  archive: InTreeArchive,
  backupId: string | undefined,
  places: ArchivePlaces,
): Promise<void> {
  const { clock, logger, paths, settings } = context;
  await checkTarget(context, cluster, places);
  const facts = await places.describe(archive);
  const store = await places.open(facts, "data");
  try {
    const place = { path: facts.connection.destination.path, serverName: archive.serverName };
    const target = parseBackupTarget(cluster.spec.bootstrap?.recovery?.recoveryTarget);
    const wanted = backupId ?? target.backupId;
    const backup = await chooseBaseBackup(store, place, wanted === undefined ? target : { backupId: wanted });
    logger.info("Target backup found", { backupId: backup.id, serverName: place.serverName });
    await checkWalOfBackup(store, place, backup);
    const request = { ...place, backupId: backup.id, dataFolder: paths.pgData };
    await restoreBaseBackup({ store, tree: createTreeFiles(), clock, logger }, request);
  } finally {
    store.close();
  }
  if (settings.pgWal !== undefined) await moveWalToVolume(context);
}

/** The new cluster must not write into the archive of another one, least of all into the one that it comes from. */
async function checkTarget(context: InstanceContext, cluster: Cluster, places: ArchivePlaces): Promise<void> {
  const own = ownArchive(cluster);
  if (!own || cluster.metadata.annotations?.[annotations.skipEmptyWalArchiveCheck] === "enabled") return;
  const facts = await places.describe(own);
  const store = await places.open(facts, "wal");
  try {
    const deps = { store, files: context.files, bulk: createBulkFiles() };
    await checkEmptyArchive(facts.keys, own.serverName, undefined, deps);
  } finally {
    store.close();
  }
}
