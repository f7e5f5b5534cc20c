import { isReplicaCluster } from "../api/cluster-facts.ts";
import { compatibleVersion, roles } from "../api/constants.ts";
import type { BasebackupInfo, PostgresStatus, ReplicationInfo, ReplicationSlotInfo } from "../api/pg-status.ts";
import { reportsPendingRestart } from "../plan/instance/pending-restart.ts";
import { canLowerOnReplica } from "../postgres/hot-standby.ts";
import { compareLsn } from "../postgres/lsn.ts";
import type { InstanceContext } from "./instance-context.ts";
import { reportsUnavailable } from "./instance-state.ts";
import { LocalSql } from "./local-sql.ts";
import { readPendingRestart } from "./reconcile/reload.ts";

/** What does not change while this process lives. */
export interface ManagerIdentity {
  sessionId: string;
  executableHash: string;
  arch: string;
}

/** A status query that hangs must not hold up the next one for long. */
const queryTimeoutMs = 10_000;

const commonFacts = `
  SELECT pg_is_in_recovery() AS recovering,
         (SELECT system_identifier::text FROM pg_control_system()) AS system_id,
         (SELECT timeline_id FROM pg_control_checkpoint()) AS timeline,
         (SELECT setting FROM pg_show_all_file_settings() WHERE name = 'cnpg.config_sha256' ORDER BY seqno DESC LIMIT 1) AS config_hash`;

const archiverFacts = `
  SELECT coalesce(last_archived_wal, '') AS last_archived_wal,
         to_char(coalesce(last_archived_time, '-infinity') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS last_archived_time,
         last_archived_time IS NOT NULL AS has_archived,
         coalesce(last_failed_wal, '') AS last_failed_wal,
         to_char(coalesce(last_failed_time, '-infinity') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS last_failed_time,
         last_failed_time IS NOT NULL AS has_failed,
         coalesce(last_archived_time, '-infinity') > coalesce(last_failed_time, '-infinity') AS archiving
    FROM pg_stat_archiver`;

const primaryFacts = `
  SELECT pg_current_wal_lsn()::text AS current_lsn, pg_walfile_name(pg_current_wal_lsn()) AS current_wal`;

const standbyFacts = `
  SELECT coalesce(pg_last_wal_receive_lsn()::text, '') AS received, coalesce(pg_last_wal_replay_lsn()::text, '') AS replayed,
         pg_is_wal_replay_paused() AS paused,
         EXISTS (SELECT 1 FROM pg_stat_wal_receiver) AS receiving,
         pg_last_wal_receive_lsn() IS NOT NULL OR EXISTS (
           SELECT 1 FROM pg_stat_activity
            WHERE backend_type = 'startup' AND wait_event IN ('RecoveryWalStream', 'RecoveryRetrieveRetryInterval')) AS all_read`;

const replicationFacts = `
  SELECT application_name AS "applicationName", coalesce(state, '') AS state,
         coalesce(sent_lsn::text, '') AS "receivedLsn", coalesce(write_lsn::text, '') AS "writeLsn",
         coalesce(flush_lsn::text, '') AS "flushLsn", coalesce(replay_lsn::text, '') AS "replayLsn",
         coalesce(write_lag, '0'::interval)::text AS "writeLag", coalesce(flush_lag, '0'::interval)::text AS "flushLag",
         coalesce(replay_lag, '0'::interval)::text AS "replayLag",
         coalesce(sync_state, '') AS "syncState", coalesce(sync_priority::text, '') AS "syncPriority"
    FROM pg_stat_replication
   WHERE application_name ~ $1 AND usename = $2
   ORDER BY application_name`;

const slotFacts = `
  SELECT slot_name AS "slotName", coalesce(plugin::text, '') AS plugin, coalesce(slot_type, '') AS "slotType",
         coalesce(datoid::text, '') AS datoid, coalesce(database::text, '') AS database, active,
         coalesce(xmin::text, '') AS xmin, coalesce(catalog_xmin::text, '') AS "catalogXmin",
         coalesce(restart_lsn::text, '') AS "restartLsn", coalesce(wal_status, '') AS "walStatus", safe_wal_size
    FROM pg_replication_slots ORDER BY slot_name`;

const basebackupFacts = `
  SELECT usename, application_name, backend_start::text AS backend_start, phase,
         coalesce(backup_total, 0)::float8 AS backup_total, coalesce(backup_streamed, 0)::float8 AS backup_streamed,
         pg_size_pretty(coalesce(backup_total, 0)) AS backup_total_pretty,
         pg_size_pretty(coalesce(backup_streamed, 0)) AS backup_streamed_pretty,
         coalesce(tablespaces_total, 0)::float8 AS tablespaces_total,
         coalesce(tablespaces_streamed, 0)::float8 AS tablespaces_streamed
    FROM pg_stat_progress_basebackup b JOIN pg_stat_activity a USING (pid)
   WHERE application_name ~ '-join$'
   ORDER BY 1, 2`;

type Row = Record<string, unknown>;

/** The row without its empty texts, false values and nulls: those fields are left out of the answer. */
function withoutZero(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false),
  );
}

function readSlotInfo(row: Row): ReplicationSlotInfo {
  const { safe_wal_size: safe, ...rest } = row;
  const info = withoutZero(rest) as ReplicationSlotInfo;
  return safe === null || safe === undefined ? info : { ...info, safeWalSize: Number(safe) };
}

/** Collects the body of `GET /pg/status` (reference: instance manager §6.2). */
export class StatusCollector {
  readonly #context: InstanceContext;
  readonly #identity: ManagerIdentity;
  readonly #sql: LocalSql;

  constructor(context: InstanceContext, identity: ManagerIdentity) {
    this.#context = context;
    this.#identity = identity;
    this.#sql = new LocalSql(context, { queryTimeoutMs });
  }

  close(): Promise<void> {
    return this.#sql.close();
  }

  #base(): PostgresStatus {
    const { settings, state } = this.#context;
    return {
      systemID: "",
      isPrimary: false,
      replayPaused: false,
      pendingRestart: false,
      pendingRestartForDecrease: false,
      isWalReceiverActive: false,
      isPgRewindRunning: state.rewinding,
      mightBeUnavailable: reportsUnavailable(state),
      node: "",
      pod: { metadata: { name: settings.podName }, spec: { containers: null }, status: {} },
      executableHash: this.#identity.executableHash,
      instanceManagerVersion: compatibleVersion,
      instanceArch: this.#identity.arch,
      isInstanceManagerUpgrading: state.upgrading,
      sessionID: this.#identity.sessionId,
      isPodReady: false,
    };
  }

  /** The status, or an error that the caller answers with 500. */
  async collect(): Promise<PostgresStatus> {
    const { state, data } = this.#context;
    const status = this.#base();
    if (state.rewinding) {
      return { ...status, executableHash: "", instanceArch: "", sessionID: "" };
    }
    try {
      await this.#fill(status);
      return status;
    } catch (error) {
      // The operator counts a failing answer as "not reporting", so only this state may hide an error.
      if (!reportsUnavailable(state)) throw error;
      return {
        ...status,
        isPrimary: (await data.role()) === "primary",
        mightBeUnavailableMaskedError: error instanceof Error ? error.message : String(error),
      };
    }
  }

  async #fill(status: PostgresStatus): Promise<void> {
    // This session may be the only one that still works: a primary that nobody else reaches must not count as one.
    const { dataDamage } = this.#context.state;
    if (dataDamage !== undefined) throw new Error(dataDamage);
    const common = await this.#sql.one(commonFacts);
    status.systemID = String(common["system_id"] ?? "");
    status.isPrimary = common["recovering"] === false;
    status.timeLineID = Number(common["timeline"] ?? 0);
    if (common["config_hash"]) status.loadedConfigurationHash = String(common["config_hash"]);
    await this.#fillPendingRestart(status);
    await this.#fillArchiver(status);
    if (status.isPrimary) await this.#fillPrimary(status);
    else await this.#fillStandby(status);
    const backups = await this.#sql.query(basebackupFacts);
    if (backups.length > 0) status.pgStatBasebackupsInfo = backups as unknown as BasebackupInfo[];
  }

  async #fillPendingRestart(status: PostgresStatus): Promise<void> {
    const { pending, decreases } = await readPendingRestart(this.#sql);
    if (!pending) return;
    const { data, state } = this.#context;
    const decrease = decreases.length > 0;
    const control = decrease && !status.isPrimary ? await data.tryControl() : undefined;
    status.pendingRestartForDecrease = decrease;
    status.pendingRestart = reportsPendingRestart({
      pending,
      decrease,
      isPrimary: status.isPrimary,
      replicaCluster: state.cluster ? isReplicaCluster(state.cluster) : false,
      controlHigher: control ? !canLowerOnReplica(decreases, control) : undefined,
    });
  }

  async #fillArchiver(status: PostgresStatus): Promise<void> {
    const row = await this.#sql.one(archiverFacts);
    if (row["archiving"] === true) status.isArchivingWAL = true;
    if (row["last_archived_wal"]) status.lastArchivedWAL = String(row["last_archived_wal"]);
    if (row["last_failed_wal"]) status.lastFailedWAL = String(row["last_failed_wal"]);
    status.lastArchivedWALTime = row["has_archived"] === true ? String(row["last_archived_time"]) : "-infinity";
    status.lastFailedWALTime = row["has_failed"] === true ? String(row["last_failed_time"]) : "-infinity";
  }

  async #fillPrimary(status: PostgresStatus): Promise<void> {
    const { settings, files, paths } = this.#context;
    const row = await this.#sql.one(primaryFacts);
    status.currentLsn = String(row["current_lsn"]);
    status.currentWAL = String(row["current_wal"]);
    // The file name carries the timeline in use; the control file shows it only after the next checkpoint.
    status.timeLineID = Number.parseInt(status.currentWAL.slice(0, 8), 16);
    const ready = (await files.list(`${paths.pgWal}/archive_status`)).filter((name) => name.endsWith(".ready")).length;
    if (ready > 0) status.readyWalFiles = ready;
    const pattern = `^${settings.clusterName.replace(/[.]/g, "\\.")}-[0-9]+$`;
    const replication = await this.#sql.query(replicationFacts, [pattern, roles.replication]);
    if (replication.length > 0)
      status.replicationInfo = replication.map((entry) => withoutZero(entry) as ReplicationInfo);
    const slots = await this.#sql.query(slotFacts);
    if (slots.length > 0) status.replicationSlotsInfo = slots.map(readSlotInfo);
  }

  async #fillStandby(status: PostgresStatus): Promise<void> {
    const row = await this.#sql.one(standbyFacts);
    const replayed = String(row["replayed"] ?? "");
    let received = String(row["received"] ?? "");
    // After a restart nothing was received yet in this life although more was replayed.
    if (replayed && (!received || compareLsn(received, replayed) === -1)) received = replayed;
    if (received) status.receivedLsn = received;
    if (replayed) status.replayLsn = replayed;
    status.replayPaused = row["paused"] === true;
    status.isWalReceiverActive = row["receiving"] === true;
    // Recovery asks for a stream only once it has read whatever lies on the disk.
    status.cnpgTs = { walEndKnown: row["all_read"] === true };
  }
}
