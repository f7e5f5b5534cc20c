import { type BackupInfo, emptyBackupInfo } from "../../src/barman/backup-info.ts";
import { parseBarmanTime } from "../../src/barman/barman-time.ts";
import type { BackupCatalog, CatalogBackup, KeepTarget } from "../../src/barman/catalog.ts";
import { compareBackups } from "../../src/barman/catalog.ts";

/** A backup with the facts that decisions look at; times are ISO text. */
export function aBackup(
  id: string,
  facts: { begin?: string; end?: string | null; keep?: KeepTarget } & Partial<BackupInfo> = {},
): CatalogBackup {
  const {
    begin = `${id.slice(0, 4)}-${id.slice(4, 6)}-${id.slice(6, 8)} ${id.slice(9, 11)}:${id.slice(11, 13)}:${id.slice(13, 15)}+00:00`,
    end,
    keep,
    ...info
  } = facts;
  const time = (text: string) => parseBarmanTime(text) ?? null;
  return {
    id,
    keep,
    info: {
      ...emptyBackupInfo,
      status: "DONE",
      timeline: 1,
      beginTime: time(begin),
      endTime: end === null ? null : time(end ?? begin),
      ...info,
    },
  };
}

export function aCatalog(
  backups: readonly CatalogBackup[],
  unreadable: BackupCatalog["unreadable"] = [],
): BackupCatalog {
  return { backups: [...backups].sort(compareBackups), unreadable };
}
