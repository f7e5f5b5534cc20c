import type { Lsn } from "../postgres/lsn.ts";
import { switchPointOf, type TimelineSwitch } from "../postgres/timeline-history.ts";
import { type BackupCatalog, type CatalogBackup, isDone } from "./catalog.ts";

/** History files of an archive by timeline, as far as they exist. */
export type TimelineHistories = ReadonlyMap<number, readonly TimelineSwitch[]>;

/** What a recovery aims at, as far as it decides which base backup to take. */
export interface BackupTarget {
  backupId?: string;
  /** Microseconds since the epoch. */
  timeMicros?: number;
  lsn?: Lsn;
  /** A timeline's number; `latest` as PostgreSQL reads it; `current` stays on the backup's own. @default latest */
  timeline?: number | "latest" | "current";
}

export type BackupChoice = { kind: "chosen"; backup: CatalogBackup } | { kind: "none"; message: string };

/** Chooses the base backup to restore for a target: the newest done one that ends before it, on a way that leads there. */
export function chooseBackup(
  catalog: BackupCatalog,
  target: BackupTarget,
  histories: TimelineHistories = new Map(),
): BackupChoice {
  if (target.backupId !== undefined) return chooseById(catalog, target.backupId);
  const candidates = catalog.backups.filter(isDone).filter((backup) => reaches(backup, target, histories));
  const newest = candidates.reduce<CatalogBackup | undefined>(
    (best, backup) => (best && endMicros(best) > endMicros(backup) ? best : backup),
    undefined,
  );
  if (newest) return { kind: "chosen", backup: newest };
  return { kind: "none", message: `no target backup found: ${explain(catalog, target)}` };
}

/**
 * Whether recovery from a backup follows a timeline that contains it. PostgreSQL takes as `latest` the end of the unbroken
 * row of history files above the backup's timeline, and refuses to start when the backup is not on that line.
 */
export function leadsToTimeline(
  backup: { timeline: number; endLsn: Lsn | null },
  timeline: number | "latest" | "current",
  histories: TimelineHistories,
): boolean {
  if (timeline === "current") return true;
  const goal = timeline === "latest" ? newestTimeline(backup.timeline, histories) : timeline;
  if (goal === backup.timeline) return true;
  const left = switchPointOf(histories.get(goal) ?? [], backup.timeline);
  return left !== undefined && backup.endLsn !== null && backup.endLsn <= left;
}

/** The timeline PostgreSQL takes as `latest` when it starts on one. */
export function newestTimeline(start: number, histories: TimelineHistories): number {
  let newest = start;
  while (histories.has(newest + 1)) newest += 1;
  return newest;
}

function chooseById(catalog: BackupCatalog, id: string): BackupChoice {
  const backup = catalog.backups.find((candidate) => candidate.id === id);
  if (!backup) {
    const unreadable = catalog.unreadable.find((entry) => entry.id === id);
    const why = unreadable ? `: its backup.info cannot be read: ${unreadable.reason}` : "";
    return { kind: "none", message: `no backup found with ID ${id}${why}` };
  }
  if (isDone(backup)) return { kind: "chosen", backup };
  return { kind: "none", message: `backup ${id} cannot be restored: its status is ${backup.info.status}` };
}

function reaches(backup: CatalogBackup, target: BackupTarget, histories: TimelineHistories): boolean {
  const { info } = backup;
  if (target.timeMicros !== undefined && endMicros(backup) > target.timeMicros) return false;
  if (target.lsn !== undefined && (info.endXlog === null || info.endXlog >= target.lsn)) return false;
  if (info.timeline === null) return false;
  return leadsToTimeline({ timeline: info.timeline, endLsn: info.endXlog }, target.timeline ?? "latest", histories);
}

function endMicros(backup: CatalogBackup): number {
  return backup.info.endTime?.epochMicros ?? 0;
}

function explain(catalog: BackupCatalog, target: BackupTarget): string {
  const done = catalog.backups.filter(isDone).length;
  const wanted = [
    target.timeMicros === undefined ? "" : `ends at or before ${new Date(target.timeMicros / 1000).toISOString()}`,
    target.lsn === undefined ? "" : "ends before the target LSN",
    typeof target.timeline === "number" ? `leads to timeline ${target.timeline}` : "",
  ].filter((text) => text !== "");
  return `of ${done} finished backups none ${wanted.length > 0 ? wanted.join(" and ") : "is on the latest timeline's way"}`;
}
