import { parseWalFileName } from "../postgres/wal-name.ts";
import { barmanTimeMs } from "./barman-time.ts";
import { type BackupCatalog, type CatalogBackup, isDone } from "./catalog.ts";

const dayMs = 86_400_000;
/** A running backup younger than this is left alone, whatever else says. */
const startedGraceMs = dayMs;

export type RetentionPolicy = { kind: "recoveryWindow"; ms: number } | { kind: "redundancy"; count: number };

/** Reads `30d`, `4w`, `6m`, or Barman's `RECOVERY WINDOW OF n DAYS` and `REDUNDANCY n`; `undefined` for other text. A month has 31 days. */
export function parseRetentionPolicy(text: string): RetentionPolicy | undefined {
  const short = /^([1-9]\d*)([dwm])$/.exec(text);
  if (short) return recoveryWindow(Number(short[1]), short[2] ?? "");
  const window = /^\s*RECOVERY\s+WINDOW\s+OF\s+([1-9]\d*)\s+(DAY|WEEK|MONTH)S?\s*$/i.exec(text);
  if (window) return recoveryWindow(Number(window[1]), (window[2] ?? "").charAt(0).toLowerCase());
  const redundancy = /^\s*REDUNDANCY\s+([1-9]\d*)\s*$/i.exec(text);
  return redundancy ? { kind: "redundancy", count: Number(redundancy[1]) } : undefined;
}

/** The API's short form in Barman's words; `undefined` for other text. */
export function formatBarmanPolicy(text: string): string | undefined {
  const match = /^([1-9]\d*)([dwm])$/.exec(text);
  const unit = { d: "DAYS", w: "WEEKS", m: "MONTHS" }[match?.[2] ?? ""];
  return match && unit ? `RECOVERY WINDOW OF ${match[1]} ${unit}` : undefined;
}

export type RetentionClass =
  | "VALID"
  | "OBSOLETE"
  /** Obsolete, but kept so that enough backups are left. */
  | "OBSOLETE*"
  | "KEEP:FULL"
  | "KEEP:STANDALONE"
  /** Not DONE: no policy speaks of it. */
  | "NONE";

export interface RetentionOptions {
  nowMs: number;
  /** @default 0 */
  minimumRedundancy?: number;
}

/** Says of every backup what a policy makes of it. */
export function classifyBackups(
  catalog: BackupCatalog,
  policy: RetentionPolicy,
  options: RetentionOptions,
): ReadonlyMap<string, RetentionClass> {
  const classes = new Map<string, RetentionClass>();
  const newestFirst = [...catalog.backups].sort((a, b) => (a.id < b.id ? 1 : -1));
  let valid = 0;
  let reached = false;
  for (const backup of newestFirst) {
    if (!isDone(backup)) {
      classes.set(backup.id, "NONE");
      continue;
    }
    const obsolete = policy.kind === "redundancy" ? valid >= policy.count : reached;
    // The newest backup that ended before the window began is what the window's first moment is restored from.
    if (policy.kind === "recoveryWindow" && endMs(backup) < options.nowMs - policy.ms) reached = true;
    if (!obsolete) valid += 1;
    classes.set(backup.id, classOf(backup, obsolete, valid < (options.minimumRedundancy ?? 0)));
    if (obsolete && valid < (options.minimumRedundancy ?? 0)) valid += 1;
  }
  return classes;
}

export type RetentionPlan =
  | { kind: "refused"; reason: string }
  | {
      kind: "delete";
      /** Oldest first, each with the reason. */
      backups: readonly { id: string; reason: string }[];
      /** Backups that stay. */
      kept: readonly CatalogBackup[];
      classes: ReadonlyMap<string, RetentionClass>;
    };

/**
 * Decides which backups a policy removes. One unreadable `backup.info` blocks everything: nobody knows what it needs.
 * Failed backups, and started ones older than a day, go when they are older than every backup that stays valid.
 */
export function planRetention(
  catalog: BackupCatalog,
  policy: RetentionPolicy,
  options: RetentionOptions,
): RetentionPlan {
  if (catalog.unreadable.length > 0) {
    const list = catalog.unreadable.map(({ id, reason }) => `${id} (${reason})`).join(", ");
    return { kind: "refused", reason: `nothing is deleted while the catalog has unreadable backups: ${list}` };
  }
  const classes = classifyBackups(catalog, policy, options);
  const oldestStaying = catalog.backups.find((backup) => isDone(backup) && classes.get(backup.id) !== "OBSOLETE");
  const backups: { id: string; reason: string }[] = [];
  const kept: CatalogBackup[] = [];
  for (const backup of catalog.backups) {
    const reason = removalReason(backup, classes.get(backup.id), oldestStaying, options.nowMs);
    if (reason === undefined) kept.push(backup);
    else backups.push({ id: backup.id, reason });
  }
  return { kind: "delete", backups, kept, classes };
}

/** Which WAL may go once only the kept backups are left. */
export interface WalRetention {
  /** First segment that the oldest kept backup needs; nothing at or after it is touched. `undefined`: no backup is left. */
  firstRequired: string | undefined;
  isObsolete(walName: string): boolean;
}

/**
 * Decides which WAL goes with the backups that go; `backups` are all of the catalog, oldest first. These are Barman's rules, and
 * its tool leaves exactly the same objects: for each removed backup that no older kept one needs the WAL of, the names below
 * the begin of the next done backup, except history files, other timelines that any backup is on, and the own range of each
 * standalone backup. While nothing is removed all WAL stays.
 */
export function planWalRetention(backups: readonly CatalogBackup[], removed: ReadonlySet<string>): WalRetention {
  const kept = backups.filter(({ id }) => !removed.has(id));
  // A backup that runs now needs its WAL as much as one that is done.
  const needing = kept.filter(({ info }) => info.beginWal !== null && needsWal.has(info.status));
  const firstRequired = needing.find(({ keep }) => keep !== "standalone")?.info.beginWal ?? undefined;
  const ranges = needing.flatMap(({ keep, info }) => (keep === "standalone" ? [[info.beginWal, info.endWal]] : []));
  const rules = backups.flatMap((backup, at) => {
    const goes = removed.has(backup.id) && isDone(backup);
    return goes ? walRule(backups, at, removed) : [];
  });
  return {
    firstRequired,
    isObsolete(walName) {
      const parsed = parseWalFileName(walName);
      const stem = walName.slice(0, 24);
      if (firstRequired === undefined || !parsed || parsed.kind === "history" || stem >= firstRequired) return false;
      if (ranges.some(([from, to]) => from != null && stem >= from && (to == null || stem <= to))) return false;
      return rules.some(({ cut, timelines }) => stem < cut && !timelines.has(parsed.timeline));
    },
  };
}

/**
 * From which segment on WAL stays because somebody announced it, whatever the backups need. An announcement that speaks of a backup
 * falls with it: it was made from the backups that were known at the time, and the next one comes only after the removal.
 */
export function announcedBound(
  announced: string | undefined,
  backups: readonly CatalogBackup[],
  removed: ReadonlySet<string>,
): string | undefined {
  const isSpent = backups.some(({ id, info }) => removed.has(id) && info.beginWal === announced);
  return isSpent ? undefined : announced;
}

const needsWal: ReadonlySet<string> = new Set(["DONE", "STARTED", "WAITING_FOR_WALS", "SYNCING"]);

/** Which names go with the backup at a place: none when an older one that stays needs the WAL after it. */
function walRule(
  backups: readonly CatalogBackup[],
  at: number,
  removed: ReadonlySet<string>,
): { cut: string; timelines: ReadonlySet<number> }[] {
  const older = backups.slice(0, at).filter((backup) => !removed.has(backup.id) && isDone(backup));
  if (older.some(({ keep }) => keep !== "standalone")) return [];
  const until = backups.slice(at + 1).find(isDone) ?? backups[at];
  const cut = until?.info.beginWal;
  if (cut == null) return [];
  const timelines = new Set(backups.flatMap(timelinesOf));
  const own = parseWalFileName(cut)?.timeline;
  if (own !== undefined) timelines.delete(own);
  return [{ cut, timelines }];
}

function recoveryWindow(count: number, unit: string): RetentionPolicy {
  const days = unit === "d" ? 1 : unit === "w" ? 7 : 31;
  return { kind: "recoveryWindow", ms: count * days * dayMs };
}

function classOf(backup: CatalogBackup, obsolete: boolean, tooFew: boolean): RetentionClass {
  if (backup.keep === "full") return "KEEP:FULL";
  if (backup.keep === "standalone") return "KEEP:STANDALONE";
  if (!obsolete) return "VALID";
  return tooFew ? "OBSOLETE*" : "OBSOLETE";
}

function removalReason(
  backup: CatalogBackup,
  retention: RetentionClass | undefined,
  oldestStaying: CatalogBackup | undefined,
  nowMs: number,
): string | undefined {
  if (retention === "OBSOLETE") return "the retention policy no longer needs it";
  if (retention !== "NONE" || backup.keep !== undefined || !oldestStaying) return undefined;
  const begin = backup.info.beginTime ? barmanTimeMs(backup.info.beginTime) : undefined;
  const oldestBegin = oldestStaying.info.beginTime ? barmanTimeMs(oldestStaying.info.beginTime) : 0;
  const older = begin === undefined ? backup.id < oldestStaying.id : begin < oldestBegin;
  if (!older) return undefined;
  if (backup.info.status === "FAILED") return "it failed, and every backup that stays is younger";
  const abandoned = begin !== undefined && nowMs - begin > startedGraceMs;
  return abandoned ? "it was started long ago and never ended" : undefined;
}

function endMs(backup: CatalogBackup): number {
  return backup.info.endTime ? backup.info.endTime.epochMicros / 1000 : 0;
}

function timelinesOf({ info }: CatalogBackup): number[] {
  const named = info.beginWal === null ? undefined : parseWalFileName(info.beginWal)?.timeline;
  return [named, info.timeline ?? undefined].filter((timeline) => timeline !== undefined);
}
