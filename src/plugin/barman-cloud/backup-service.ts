// Base backups on request. One Backup object is one backup: a call that is repeated while it runs waits for the same one, and one
// that comes after its end, from an instance manager that was restarted meanwhile, gets the same answer.
import { isArchivingOff } from "../../api/cluster-facts.ts";
import { annotations } from "../../api/labels.ts";
import { readCatalog } from "../../archive/archive-reader.ts";
import type { BackupInfo } from "../../barman/backup-info.ts";
import { barmanTimeMs } from "../../barman/barman-time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { KubeApi } from "../../ports/kube-api.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import type { PluginBackupResult } from "../../ports/plugin.ts";
import { formatLsn } from "../../postgres/lsn.ts";
import type { BackupService } from "../framework/services.ts";
import { StatusError } from "../framework/status-error.ts";
import type { CachedReader } from "./cached-reader.ts";
import { backupMetadata } from "./identity.ts";
import { writeWindow } from "./recovery-window.ts";
import type { StoreAccess, StoreFacts } from "./store-access.ts";
import { requireOwn } from "./wal-service.ts";

/** Takes one base backup into an open store; gives its ID and what its `backup.info` says. */
export type TakeBackup = (
  backupName: string,
  facts: StoreFacts,
  store: ObjectStore,
) => Promise<{ id: string; info: BackupInfo }>;

export interface BackupDeps {
  access: StoreAccess;
  api: KubeApi;
  reader: CachedReader;
  clock: Clock;
  logger: Logger;
  namespace: string;
  podName: string;
  takeBackup: TakeBackup;
}

/** How many backups that ended well are remembered. */
const remembered = 32;

/** Creates the backup service of an instance. */
export function createBackupService(deps: BackupDeps): BackupService {
  const known = new Map<string, Promise<PluginBackupResult>>();
  return {
    backup({ cluster, backup }) {
      const id = backup.metadata.uid || `${backup.metadata.namespace}/${backup.metadata.name}`;
      const before = known.get(id);
      if (before) return before;
      const result = runBackup(cluster, deps);
      known.set(id, result);
      result.then(
        () => forgetOldest(known),
        () => known.delete(id),
      );
      return result;
    },
  };
}

/** A call under way is among the youngest: backups of one server follow each other. */
function forgetOldest(known: Map<string, unknown>): void {
  for (const id of known.keys()) {
    if (known.size <= remembered) return;
    known.delete(id);
  }
}

const archivingOff =
  `WAL archiving is off by annotation ${annotations.skipWalArchiving}, and a base backup without its WAL cannot be restored: ` +
  "take the annotation away";

async function runBackup(cluster: Parameters<typeof requireOwn>[0], deps: BackupDeps): Promise<PluginBackupResult> {
  const reference = requireOwn(cluster);
  if (isArchivingOff(cluster)) throw new StatusError("FAILED_PRECONDITION", archivingOff);
  const key = { namespace: deps.namespace, name: reference.objectStore };
  const facts = await deps.access.describe(reference);
  const store = await deps.access.open(facts, "data");
  const backupName = `backup-${compactTime(deps.clock.now())}`;
  const logger = deps.logger.child({
    backupName,
    serverName: reference.serverName,
    objectStore: reference.objectStore,
  });
  try {
    logger.info("Starting barman-cloud-backup");
    const taken = await deps.takeBackup(backupName, facts, store).catch(async (error: unknown) => {
      logger.error("Backup failed", { error });
      await writeWindow(key, reference.serverName, { kind: "failed", atMs: deps.clock.now() }, deps).catch(
        (writeError: unknown) =>
          logger.error("The failure could not be noted in the ObjectStore", { error: writeError }),
      );
      throw error;
    });
    logger.info("Backup completed", { backupId: taken.id });
    // The backup is good whatever becomes of the status, which the retention worker writes too.
    await refreshWindow(store, facts, key, deps).catch((error: unknown) =>
      logger.warning("The recovery window could not be brought up to date", { error }),
    );
    return resultOf(taken, backupName, cluster.metadata.uid ?? "", deps.podName);
  } finally {
    store.close();
  }
}

async function refreshWindow(
  store: ObjectStore,
  facts: StoreFacts,
  key: { namespace: string; name: string },
  deps: BackupDeps,
): Promise<void> {
  const catalog = await readCatalog(store, facts.keys);
  await writeWindow(key, facts.serverName, { kind: "catalog", catalog }, deps);
}

function resultOf(
  { id, info }: { id: string; info: BackupInfo },
  backupName: string,
  clusterUid: string,
  podName: string,
): PluginBackupResult {
  return {
    backupId: id,
    backupName: info.backupName ?? backupName,
    ...(info.beginTime ? { startedAt: wholeSeconds(barmanTimeMs(info.beginTime)) } : {}),
    ...(info.endTime ? { stoppedAt: wholeSeconds(barmanTimeMs(info.endTime)) } : {}),
    beginWal: info.beginWal ?? "",
    endWal: info.endWal ?? "",
    beginLsn: info.beginXlog === null ? "" : formatLsn(info.beginXlog),
    endLsn: info.endXlog === null ? "" : formatLsn(info.endXlog),
    backupLabelFile: new Uint8Array(),
    tablespaceMapFile: new Uint8Array(),
    instanceId: podName,
    online: true,
    metadata: backupMetadata(clusterUid, info.timeline ?? 0),
  };
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

/** Digits only, UTC, as the names of backups have always been. */
function compactTime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replaceAll(/\D/g, "");
}
