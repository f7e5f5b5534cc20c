// One backup mode: PostgreSQL keeps a backup open in one session, while somebody else copies the volumes.
import { roles } from "../../api/constants.ts";
import { chooseArchiver } from "../../plan/instance/wal-sources.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { parseLsn } from "../../postgres/lsn.ts";
import { formatWalSegment, walSegmentOfLsn } from "../../postgres/wal-name.ts";
import type { InstanceContext } from "../instance-context.ts";
import { waitForArchivedEnd } from "./archiving-ready.ts";

/** What the operator asks for. */
export interface BackupModeRequest {
  backupName: string;
  immediateCheckpoint: boolean;
  waitForArchive: boolean;
}

/** How far it is, as the operator reads it; files are base64, what is empty is left out (reference: instance manager §6.4). */
export interface BackupModeData {
  backupName: string;
  phase: "starting" | "started" | "closing" | "completed";
  beginLSN?: string;
  endLSN?: string;
  labelFile?: string;
  spcmapFile?: string;
}

/** Longest name of a slot, in bytes. */
const slotNameLimit = 63;
const pingLimitMs = 5_000;
const firstVersionOfPgBackup = 150_000;
const firstVersionOfIdleTimeout = 140_000;

/** A session that holds the backup mode, from its opening on. When it is lost, PostgreSQL ends the backup by itself. */
export class ModeSession {
  readonly request: BackupModeRequest;
  readonly #context: InstanceContext;
  readonly #session: SqlSession;
  readonly #closing = new AbortController();
  #data: BackupModeData;
  #error: string | undefined;

  private constructor(context: InstanceContext, session: SqlSession, request: BackupModeRequest) {
    this.#context = context;
    this.#session = session;
    this.request = request;
    this.#data = { backupName: request.backupName, phase: "starting" };
    // A smart stop of PostgreSQL would wait for it.
    context.localSessions.add(this);
  }

  /** Opens the session and nothing more. */
  static async open(context: InstanceContext, request: BackupModeRequest): Promise<ModeSession> {
    const target = {
      host: context.paths.socketDir,
      port: context.settings.postgresPort,
      user: roles.superuser,
      database: "postgres",
      applicationName: "cnpg-backup-mode",
      connectTimeoutMs: 10_000,
    };
    return new ModeSession(context, await context.sql.connect(target), request);
  }

  get data(): BackupModeData {
    return this.#data;
  }

  /** Why the backup failed. */
  get error(): string | undefined {
    return this.#error;
  }

  /** Starts the backup; takes as long as a checkpoint does. */
  async start(): Promise<void> {
    const { backupName, immediateCheckpoint } = this.request;
    await this.#attempt("starting the backup", async () => {
      const version = await this.#version();
      if (version >= firstVersionOfIdleTimeout) await this.#session.query("SET idle_session_timeout TO 0");
      const slot = backupName.replaceAll(/[^a-z0-9_]/g, "_").slice(0, slotNameLimit);
      // It keeps the WAL that the copy will need, and goes with the session.
      await this.#session.query("SELECT pg_create_physical_replication_slot($1, true, true)", [slot]);
      const call = version >= firstVersionOfPgBackup ? "pg_backup_start($1, $2)" : "pg_start_backup($1, $2, false)";
      const [row] = await this.#session.query(`SELECT ${call}::text AS lsn`, [backupName, immediateCheckpoint]);
      this.#data = { ...this.#data, phase: "started", beginLSN: String(row?.["lsn"] ?? "") };
    });
  }

  /** To be called before `stop`, so that whoever asks in between sees it. */
  closing(): void {
    this.#data = { ...this.#data, phase: "closing" };
  }

  /** Ends the backup; with `waitForArchive` once the archive holds the WAL that the copy needs. */
  async stop(): Promise<void> {
    await this.#attempt("ending the backup", async () => {
      const { waitForArchive } = this.request;
      const call =
        (await this.#version()) >= firstVersionOfPgBackup ? "pg_backup_stop($1)" : "pg_stop_backup(false, $1)";
      const [row] = await this.#session.query(`SELECT lsn::text AS lsn, labelfile, spcmapfile FROM ${call}`, [
        waitForArchive,
      ]);
      const endLSN = String(row?.["lsn"] ?? "");
      if (waitForArchive) await this.#waitOnStandby(endLSN);
      const base64 = (value: unknown) => Buffer.from(String(value ?? "")).toString("base64");
      this.#data = {
        ...this.#data,
        phase: "completed",
        endLSN,
        ...(row?.["labelfile"] ? { labelFile: base64(row["labelfile"]) } : {}),
        ...(row?.["spcmapfile"] ? { spcmapFile: base64(row["spcmapfile"]) } : {}),
      };
    });
    await this.close();
  }

  /** Notes that the session is gone; it says so only when it is used. */
  async check(): Promise<void> {
    if (this.#data.phase !== "started" || this.#error !== undefined) return;
    await this.#attempt("the session of the backup", async () => {
      const limit = this.#context.clock.sleep(pingLimitMs, this.#closing.signal).then(() => {
        throw new Error(`no answer within ${pingLimitMs} ms`);
      });
      await Promise.race([this.#session.query("SELECT 1"), limit]);
    });
  }

  /** Ends the session, and with it a backup that is still open. */
  async abort(reason: string): Promise<void> {
    if (this.#data.phase !== "completed") this.#error ??= reason;
    await this.close();
  }

  /** Ends the session. */
  async close(): Promise<void> {
    if (this.#data.phase !== "completed") this.#error ??= "the session was closed before the backup ended";
    this.#data = { ...this.#data, phase: "completed" };
    this.#closing.abort(new Error(this.#error ?? "the backup has ended"));
    this.#context.localSessions.delete(this);
    await this.#session.close().catch(() => undefined);
  }

  async #attempt(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#error ??= `${what} failed: ${error instanceof Error ? error.message : String(error)}`;
      await this.close();
    }
  }

  async #version(): Promise<number> {
    const [row] = await this.#session.query("SELECT current_setting('server_version_num')::int AS version");
    return Number(row?.["version"]);
  }

  /** On a standby PostgreSQL waits for no archive, and nothing there can close the segment: the primary has to. */
  async #waitOnStandby(endLSN: string): Promise<void> {
    const { cluster } = this.#context.state;
    const end = parseLsn(endLSN);
    if (!cluster || !end || chooseArchiver(cluster).kind === "none") return;
    const [row] = await this.#session.query(`
      SELECT pg_is_in_recovery() AS recovering, pg_size_bytes(current_setting('wal_segment_size'))::float8 AS bytes,
             (SELECT min_recovery_end_timeline FROM pg_control_recovery()) AS minimum,
             (SELECT timeline_id FROM pg_control_checkpoint()) AS timeline`);
    if (row?.["recovering"] !== true) return;
    const timeline = Number(row["minimum"]) || Number(row["timeline"]);
    const endWal = formatWalSegment(walSegmentOfLsn(timeline, end, Number(row["bytes"])));
    await waitForArchivedEnd(this.#context, endWal, this.#closing.signal);
  }
}
