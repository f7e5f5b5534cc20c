// What a base backup leaves out: contents that PostgreSQL makes anew, or that another server must not inherit.

/** What becomes of one path of a tree. */
export type CopyDecision =
  /** Stored, and walked if it is a folder. */
  | "copy"
  /** Neither stored nor walked. */
  | "leaveOut";

/** Folders right below PGDATA that are stored empty. */
const emptyAtTop: ReadonlySet<string> = new Set(["pg_log", "log", "pg_xlog", "pg_wal"]);
/** Folders anywhere that are stored empty. */
const emptyAnywhere: ReadonlySet<string> = new Set([
  "pg_dynshmem",
  "pg_notify",
  "pg_replslot",
  "pg_serial",
  "pg_stat_tmp",
  "pg_snapshots",
  "pg_subtrans",
]);
const namesAnywhere: ReadonlySet<string> = new Set([
  "postgresql.auto.conf.tmp",
  "current_logfiles.tmp",
  "pg_internal.init",
  "postmaster.pid",
  "postmaster.opts",
  "recovery.conf",
  "standby.signal",
]);

/** The file that is copied after all others. */
export const controlFilePath = "global/pg_control";

/** Decides about a path of PGDATA, relative and without a leading dot. `tablespaceFolders` are those inside PGDATA, relative too. */
export function decideDataPath(path: string, tablespaceFolders: ReadonlySet<string> = new Set()): CopyDecision {
  const parts = path.split("/");
  if (parts.length > 1 && emptyAtTop.has(parts[0] ?? "")) return "leaveOut";
  if (path === controlFilePath || tablespaceFolders.has(path)) return "leaveOut";
  // It goes in last, with the text that the end of the backup gives; one that lies here is of another backup.
  if (path === "backup_label" || path === "tablespace_map") return "leaveOut";
  return decideAnywhere(parts);
}

/** Decides about a path of a tablespace, relative to its folder: only what this major version of the server put there. */
export function decideTablespacePath(path: string, majorVersion: number): CopyDecision {
  const parts = path.split("/");
  if (!parts[0]?.startsWith(`PG_${majorVersion}_`)) return "leaveOut";
  return decideAnywhere(parts);
}

function decideAnywhere(parts: readonly string[]): CopyDecision {
  const name = parts.at(-1) ?? "";
  const folder = parts.at(-2);
  if (folder !== undefined && emptyAnywhere.has(folder)) return "leaveOut";
  if (name.startsWith("pgsql_tmp") || namesAnywhere.has(name)) return "leaveOut";
  return isTemporaryRelation(folder, name) ? "leaveOut" : "copy";
}

/** Relations of a session that will not be there: `t3_16384` and its forks and segments, in a database's folder. */
function isTemporaryRelation(folder: string | undefined, name: string): boolean {
  return folder !== undefined && /^\d+$/.test(folder) && /^t\d+_\d+(?:_[a-z]+)?(?:\.\d+)?$/.test(name);
}

/** Name of a path in the archive: the first level carries a dot, deeper ones do not. */
export function tarNameOf(path: string): string {
  return path.includes("/") ? path : `./${path}`;
}
