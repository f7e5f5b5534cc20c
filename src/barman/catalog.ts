import { type BackupInfo, parseBackupInfo } from "./backup-info.ts";
import { barmanTimeMs } from "./barman-time.ts";

/** What a keep annotation asks for: the backup and all later WAL, or the backup and its own WAL only. */
export type KeepTarget = "full" | "standalone";

export interface CatalogBackup {
  id: string;
  info: BackupInfo;
  keep: KeepTarget | undefined;
}

/** Everything below `base/` of one server. */
export interface BackupCatalog {
  /** Oldest first. */
  backups: readonly CatalogBackup[];
  /** Folders whose `backup.info` could not be understood; they block every deletion by policy. */
  unreadable: readonly { id: string; reason: string }[];
}

/** One folder below `base/` as it was read; a folder without `backup.info` is no backup. */
export interface CatalogEntry {
  id: string;
  backupInfo: string | undefined;
  keep?: string | undefined;
}

/** Builds the catalog of one server. */
export function buildCatalog(entries: readonly CatalogEntry[]): BackupCatalog {
  const backups: CatalogBackup[] = [];
  const unreadable: { id: string; reason: string }[] = [];
  for (const { id, backupInfo, keep } of entries) {
    if (backupInfo === undefined) continue;
    try {
      backups.push({ id, info: parseBackupInfo(backupInfo), keep: parseKeep(keep) });
    } catch (error) {
      unreadable.push({ id, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  backups.sort(compareBackups);
  return { backups, unreadable };
}

/** Order of two backups: by begin, then by ID. */
export function compareBackups(a: CatalogBackup, b: CatalogBackup): number {
  const begin = (a.info.beginTime?.epochMicros ?? 0) - (b.info.beginTime?.epochMicros ?? 0);
  if (begin !== 0) return begin;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/** A backup that can be restored: status DONE, with a begin and an end. */
export function isDone(backup: CatalogBackup): boolean {
  const { info } = backup;
  return info.status === "DONE" && info.beginTime !== null && info.endTime !== null;
}

/** What the status of an ObjectStore shows of one server. Milliseconds since the epoch. */
export interface RecoveryWindow {
  /** End of the oldest backup that is done: the first moment to which a recovery can go. */
  firstRecoverabilityPointMs: number | undefined;
  /** End of the backup that is done and ended last. */
  lastSuccessfulBackupMs: number | undefined;
}

/** Computes the recovery window of a server. */
export function computeRecoveryWindow(catalog: BackupCatalog): RecoveryWindow {
  const ends = catalog.backups.flatMap((backup) =>
    isDone(backup) && backup.info.endTime ? [barmanTimeMs(backup.info.endTime)] : [],
  );
  if (ends.length === 0) return { firstRecoverabilityPointMs: undefined, lastSuccessfulBackupMs: undefined };
  return { firstRecoverabilityPointMs: Math.min(...ends), lastSuccessfulBackupMs: Math.max(...ends) };
}

/** The segment that the oldest restorable backup begins with: what must stay in the archive. */
export function firstRequiredWal(catalog: BackupCatalog): string | undefined {
  return catalog.backups.find((backup) => isDone(backup) && backup.info.beginWal !== null)?.info.beginWal ?? undefined;
}

export type FoundBackup = { kind: "found"; backup: CatalogBackup } | { kind: "missing" | "ambiguous"; message: string };

/** Finds a backup by its ID, its name, or one of the words first, oldest, last, latest and last-failed. */
export function findBackup(catalog: BackupCatalog, wanted: string): FoundBackup {
  const shortcut = findShortcut(catalog, wanted);
  if (shortcut) return { kind: "found", backup: shortcut };
  const byId = catalog.backups.find((backup) => backup.id === wanted);
  if (byId) return { kind: "found", backup: byId };
  const named = catalog.backups.filter((backup) => backup.info.backupName === wanted);
  const [only] = named;
  if (!only) return { kind: "missing", message: `no backup found with ID or name ${wanted}` };
  if (named.length === 1) return { kind: "found", backup: only };
  return { kind: "ambiguous", message: `${named.length} backups have the name ${wanted}` };
}

function findShortcut(catalog: BackupCatalog, wanted: string): CatalogBackup | undefined {
  const done = catalog.backups.filter(isDone);
  if (wanted === "first" || wanted === "oldest") return done[0];
  if (wanted === "last" || wanted === "latest") return done.at(-1);
  if (wanted === "last-failed") return catalog.backups.filter((backup) => backup.info.status === "FAILED").at(-1);
  return undefined;
}

function parseKeep(content: string | undefined): KeepTarget | undefined {
  if (content === undefined) return undefined;
  const word = content.trim();
  if (word === "full" || word === "standalone") return word;
  throw new Error(`annotations/keep holds ${JSON.stringify(word)}, which is neither full nor standalone`);
}
