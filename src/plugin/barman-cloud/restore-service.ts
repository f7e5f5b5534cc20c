// The recovery of a data folder from an archive, in the Job that makes a cluster's first instance.

import { paths } from "../../api/constants.ts";
import type { Cluster } from "../../api/generated/cluster.ts";
import { checkWalOfBackup, chooseBaseBackup } from "../../archive/base/find-base-backup.ts";
import { downloadWal } from "../../archive/wal-download.ts";
import { WalError } from "../../archive/wal-error.ts";
import { parseBackupTarget } from "../../barman/backup-target.ts";
import type { CatalogBackup } from "../../barman/catalog.ts";
import type { BulkFiles } from "../../ports/bulk-files.ts";
import type { Files } from "../../ports/files.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import type { RestoreJobService } from "../framework/services.ts";
import { StatusError } from "../framework/status-error.ts";
import { withBaseStatus } from "./base-failure.ts";
import { checkExternalStore, checkRecoveryArchive, readClusterStores } from "./cluster-stores.ts";
import type { StoreAccess, StoreFacts } from "./store-access.ts";
import { withWalStatus } from "./wal-failure.ts";
import { requireEmptyArchive, skipsEmptyCheck } from "./wal-service.ts";

/** Restores one backup into the data folder; the log goes to `walFolder` when the cluster keeps it on a volume of its own. */
export type RestoreBackup = (
  backup: CatalogBackup,
  facts: StoreFacts,
  store: ObjectStore,
  target: { pgData: string; walFolder: string | undefined },
) => Promise<void>;

export interface RestoreDeps {
  access: StoreAccess;
  files: Files;
  bulk: BulkFiles;
  logger: Logger;
  pgData: string;
  /** Folder for the file that proves the archive to be readable. @default /controller/recovery */
  scratchFolder?: string;
  /** Folder of the log on a volume of its own. @default /var/lib/postgresql/wal/pg_wal */
  walVolume?: string;
  restoreBackup: RestoreBackup;
}

/** What PostgreSQL is told: how it gets its WAL, and what it does at the target. */
const restoreConfig = [
  "recovery_target_action = promote",
  "restore_command = '/controller/manager wal-restore --log-destination /controller/log/postgres.json %f %p'",
  "",
].join("\n");

/** Creates the restore service of a Job. */
export function createRestoreService(deps: RestoreDeps): RestoreJobService {
  return {
    restore: ({ cluster, checkEmptyWalArchive }) =>
      withWalStatus(() =>
        withBaseStatus(async () => {
          if (deps.pgData === "") throw new StatusError("FAILED_PRECONDITION", "PGDATA is not set in the sidecar");
          const stores = readClusterStores(cluster);
          if (!stores.recovery) throw new StatusError("FAILED_PRECONDITION", explainMissing(cluster));
          if (stores.own && (checkEmptyWalArchive ?? !skipsEmptyCheck(cluster))) {
            const mixed = checkRecoveryArchive(cluster);
            if (mixed) throw new StatusError("FAILED_PRECONDITION", mixed);
            await requireEmptyArchive(deps.access, await deps.access.describe(stores.own), deps);
          }
          const facts = await deps.access.describe(stores.recovery);
          const store = await deps.access.open(facts, "data");
          try {
            await recover(cluster, facts, store, deps);
          } finally {
            store.close();
          }
          return { restoreConfig, envs: [] };
        }),
      ),
  };
}

async function recover(cluster: Cluster, facts: StoreFacts, store: ObjectStore, deps: RestoreDeps): Promise<void> {
  const target = parseBackupTarget(cluster.spec.bootstrap?.recovery?.recoveryTarget);
  const place = { path: facts.connection.destination.path, serverName: facts.serverName };
  const backup = await chooseBaseBackup(store, place, target);
  deps.logger.info("Target backup found", { backupId: backup.id, serverName: facts.serverName });
  await checkWalOfBackup(store, place, backup);
  await probeWal(backup, facts, store, deps);
  const walFolder = cluster.spec.walStorage ? (deps.walVolume ?? paths.walDir) : undefined;
  await deps.restoreBackup(backup, facts, store, { pgData: deps.pgData, walFolder });
  deps.logger.info("Restore completed", { backupId: backup.id });
}

/** A backup is of no use without the segment that it begins with: better to know before hours of copying. */
async function probeWal(
  { id, info }: CatalogBackup,
  { keys }: StoreFacts,
  store: ObjectStore,
  { files, bulk, scratchFolder = `${paths.scratch}/recovery` }: RestoreDeps,
): Promise<void> {
  if (info.beginWal === null) return;
  await files.makeDirectory(scratchFolder, 0o700);
  const path = `${scratchFolder}/test.wal`;
  const attempt = `cannot restore backup ${id}`;
  try {
    const signal = new AbortController().signal;
    const fetched = await downloadWal(info.beginWal, path, undefined, { store, bulk, keys, signal });
    if (fetched) return;
    throw new StatusError(
      "FAILED_PRECONDITION",
      `${attempt}: its first WAL file ${store.location}/${keys.wal(info.beginWal)} does not exist`,
    );
  } catch (error) {
    if (error instanceof StatusError) throw error;
    throw WalError.from(attempt, error);
  } finally {
    await files.remove(path);
  }
}

function explainMissing(cluster: Cluster): string {
  const source = cluster.spec.bootstrap?.recovery?.source;
  return (
    checkExternalStore(cluster, source) ??
    `Cluster ${cluster.metadata.name} does not recover from an external cluster of this plugin`
  );
}
