// The one session in which PostgreSQL keeps a base backup open: what the server is, the begin and the end of the backup. When
// the session is lost in between, the server ends the backup and the copy is void.
import type { BackupTablespace } from "../../barman/backup-info.ts";
import { type BarmanTime, parseBarmanTime } from "../../barman/barman-time.ts";
import type { SqlRow, SqlSession } from "../../ports/sql-session.ts";
import { type Lsn, parseLsn } from "../../postgres/lsn.ts";
import { BaseError } from "./base-error.ts";

/** What the server tells about itself before the backup. */
export interface ServerFacts {
  systemId: string;
  serverVersion: number;
  dataFolder: string;
  configFile: string;
  hbaFile: string;
  identFile: string;
  includedFiles: readonly string[];
  dataChecksums: string;
  /** `null` before version 17. */
  summarizeWal: string | null;
  segmentBytes: number;
  clusterBytes: number;
  tablespaces: readonly BackupTablespace[];
  inRecovery: boolean;
}

export interface BackupBegin {
  lsn: Lsn;
  time: BarmanTime;
  timeline: number;
}

export interface BackupEnd {
  lsn: Lsn;
  time: BarmanTime;
  timeline: number;
  label: string;
  tablespaceMap: string;
}

const firstVersionOfPgBackup = 150_000;
const firstVersionOfIdleTimeout = 140_000;
const firstVersionOfSummaries = 170_000;

/** Reads what a backup must know of its server. */
export async function readServerFacts(session: SqlSession): Promise<ServerFacts> {
  const [row] = await session.query(`
    SELECT system_identifier::text AS system_id,
           current_setting('server_version_num')::int AS version,
           current_setting('data_directory') AS data_folder,
           current_setting('config_file') AS config_file,
           current_setting('hba_file') AS hba_file,
           coalesce(current_setting('ident_file'), '') AS ident_file,
           current_setting('data_checksums') AS data_checksums,
           current_setting('summarize_wal', true) AS summarize_wal,
           pg_size_bytes(current_setting('wal_segment_size'))::text AS segment_bytes,
           (SELECT sum(pg_tablespace_size(oid)) FROM pg_tablespace)::text AS cluster_bytes,
           pg_is_in_recovery() AS in_recovery
      FROM pg_control_system()`);
  const tablespaces = await session.query(`
    SELECT spcname::text AS name, oid::text AS oid, pg_tablespace_location(oid) AS location
      FROM pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global') ORDER BY oid`);
  const included = await session.query(`
    SELECT DISTINCT sourcefile AS path FROM pg_settings
     WHERE sourcefile IS NOT NULL AND sourcefile <> current_setting('config_file') ORDER BY 1`);
  const read = new Row(row, "its settings");
  const serverVersion = read.number("version");
  const facts: ServerFacts = {
    systemId: read.text("system_id"),
    serverVersion,
    dataFolder: read.text("data_folder"),
    configFile: read.text("config_file"),
    hbaFile: read.text("hba_file"),
    identFile: read.text("ident_file"),
    includedFiles: included.map((entry) => new Row(entry, "its configuration files").text("path")),
    dataChecksums: read.text("data_checksums"),
    summarizeWal: serverVersion >= firstVersionOfSummaries ? read.text("summarize_wal") : null,
    segmentBytes: read.number("segment_bytes"),
    clusterBytes: read.number("cluster_bytes"),
    tablespaces: tablespaces.map((entry) => {
      const space = new Row(entry, "a tablespace");
      return { name: space.text("name"), oid: space.number("oid"), location: space.text("location") };
    }),
    inRecovery: read.flag("in_recovery"),
  };
  return facts;
}

/** Begins the backup; takes as long as a checkpoint does. */
export async function beginBackup(
  session: SqlSession,
  facts: ServerFacts,
  options: { label: string; fast: boolean },
): Promise<BackupBegin> {
  if (facts.serverVersion >= firstVersionOfIdleTimeout) await session.query("SET idle_session_timeout TO 0");
  const call =
    facts.serverVersion >= firstVersionOfPgBackup ? "pg_backup_start($1, $2)" : "pg_start_backup($1, $2, false)";
  const [row] = await session.query(`SELECT now() AS time, ${call}::text AS lsn`, [options.label, options.fast]);
  // Only after the checkpoint that the begin has made: right after a promotion the old one shows the old timeline.
  const [control] = await session.query("SELECT timeline_id AS timeline FROM pg_control_checkpoint()");
  const read = new Row(row, "the begin of the backup");
  return {
    lsn: read.lsn("lsn"),
    time: read.time("time"),
    timeline: new Row(control, "its checkpoint").number("timeline"),
  };
}

/** Ends the backup without waiting for the archive, which is looked into afterwards. */
export async function endBackup(session: SqlSession, facts: ServerFacts, begin: BackupBegin): Promise<BackupEnd> {
  const call = facts.serverVersion >= firstVersionOfPgBackup ? "pg_backup_stop(false)" : "pg_stop_backup(false, false)";
  const [row] = await session.query(`
    SELECT now() AS time, stop.lsn::text AS lsn, stop.labelfile AS label, stop.spcmapfile AS map,
           CASE WHEN pg_is_in_recovery() THEN (SELECT min_recovery_end_timeline FROM pg_control_recovery())
                ELSE (SELECT timeline_id FROM pg_control_checkpoint()) END AS timeline
      FROM ${call} AS stop`);
  const read = new Row(row, "the end of the backup");
  return {
    lsn: read.lsn("lsn"),
    time: read.time("time"),
    // A standby that has not written anything since its start has no minimum yet.
    timeline: read.number("timeline") || begin.timeline,
    label: read.text("label"),
    tablespaceMap: read.text("map"),
  };
}

/** Closes the current segment of a primary and names the moment; both only help, so their failure is none. */
export async function markEnd(session: SqlSession, backupId: string): Promise<void> {
  await session.query("SELECT pg_switch_wal()");
  await session.query("SELECT pg_create_restore_point($1)", [`barman_${backupId}`]);
}

class Row {
  readonly #row: SqlRow;
  readonly #what: string;

  constructor(row: SqlRow | undefined, what: string) {
    if (!row) throw new BaseError("postgres", `PostgreSQL says nothing about ${what}`);
    this.#row = row;
    this.#what = what;
  }

  text(column: string): string {
    const value = this.#row[column];
    return value === null || value === undefined ? "" : String(value);
  }

  flag(column: string): boolean {
    return this.#row[column] === true;
  }

  number(column: string): number {
    const value = Number(this.#row[column]);
    return Number.isSafeInteger(value) ? value : this.#fail(column);
  }

  lsn(column: string): Lsn {
    return parseLsn(this.text(column)) ?? this.#fail(column);
  }

  time(column: string): BarmanTime {
    return parseBarmanTime(this.text(column)) ?? this.#fail(column);
  }

  #fail(column: string): never {
    const value = JSON.stringify(this.#row[column]);
    throw new BaseError(
      "postgres",
      `PostgreSQL says of ${this.#what} that ${column} is ${value}, which cannot be read`,
    );
  }
}
