// In-tree backups whose instance manager ended before it wrote their end: the archive tells whether they were complete.
import type { Backup } from "../../api/generated/backup.ts";
import { readCatalog } from "../../archive/archive-reader.ts";
import type { BackupInfo } from "../../barman/backup-info.ts";
import { barmanTimeMs } from "../../barman/barman-time.ts";
import { isDone } from "../../barman/catalog.ts";
import type { CompletedBackup } from "../../plan/instance/backup.ts";
import type { InTreeArchive } from "../../plan/instance/wal-sources.ts";
import { formatLsn } from "../../postgres/lsn.ts";
import type { InstanceContext } from "../instance-context.ts";
import type { ArchivePlaces } from "../wal/archive-places.ts";

/** Pauses and patience while the archive cannot be read, in milliseconds. */
const pauseMs = 10_000;
const patienceMs = 300_000;

/** Looks a running backup up by its name; `undefined` = the archive has none of that name that is complete. */
export async function findTakenBackup(
  context: InstanceContext,
  places: ArchivePlaces,
  { archive, backup, signal }: { archive: InTreeArchive; backup: Backup; signal: AbortSignal },
): Promise<CompletedBackup | undefined> {
  const { backupName, destinationPath, serverName } = backup.status ?? {};
  const isThere = archive.configuration.destinationPath === destinationPath && archive.serverName === serverName;
  // Under another archive its name says nothing.
  if (!backupName || !isThere) return undefined;
  const endMs = context.clock.monotonicMs() + patienceMs;
  for (;;) {
    try {
      return await look(places, archive, backupName, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (context.clock.monotonicMs() > endMs) throw error;
      context.logger.warning("The archive does not tell yet what became of a backup", { backupName, error });
      await context.clock.sleep(pauseMs, signal);
    }
  }
}

async function look(
  places: ArchivePlaces,
  archive: InTreeArchive,
  backupName: string,
  signal: AbortSignal,
): Promise<CompletedBackup | undefined> {
  const facts = await places.describe(archive);
  const store = await places.open(facts, "data");
  try {
    const { backups } = await readCatalog(store, facts.keys, signal);
    const found = backups.find((it) => it.info.backupName === backupName && isDone(it));
    return found && completed(found.id, backupName, found.info);
  } finally {
    store.close();
  }
}

function completed(backupId: string, backupName: string, info: BackupInfo): CompletedBackup {
  const { beginTime, endTime, beginXlog, endXlog } = info;
  return {
    backupId,
    backupName,
    startedAtMs: beginTime ? barmanTimeMs(beginTime) : undefined,
    stoppedAtMs: endTime ? barmanTimeMs(endTime) : undefined,
    beginWal: info.beginWal ?? "",
    endWal: info.endWal ?? "",
    beginLsn: beginXlog === null ? "" : formatLsn(beginXlog),
    endLsn: endXlog === null ? "" : formatLsn(endXlog),
  };
}
