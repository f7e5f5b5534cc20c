import { pendingPrimary } from "./constants.ts";

/** Body of `GET /pg/status` (reference: instance manager §6.2). Fields marked optional are left out when zero. */
export interface PostgresStatus {
  currentLsn?: string;
  receivedLsn?: string;
  replayLsn?: string;
  systemID: string;
  isPrimary: boolean;
  replayPaused: boolean;
  pendingRestart: boolean;
  pendingRestartForDecrease: boolean;
  isWalReceiverActive: boolean;
  isPgRewindRunning: boolean;
  mightBeUnavailable: boolean;
  mightBeUnavailableMaskedError?: string;
  isArchivingWAL?: boolean;
  node: string;
  pod: { metadata: { name: string }; spec: { containers: null }; status: Record<string, never> };
  loadedConfigurationHash?: string;
  lastArchivedWAL?: string;
  lastFailedWAL?: string;
  lastArchivedWALTime?: string;
  lastFailedWALTime?: string;
  currentWAL?: string;
  readyWalFiles?: number;
  timeLineID?: number;
  replicationInfo?: ReplicationInfo[];
  replicationSlotsInfo?: ReplicationSlotInfo[];
  pgStatBasebackupsInfo?: BasebackupInfo[];
  executableHash: string;
  instanceManagerVersion: string;
  instanceArch: string;
  isInstanceManagerUpgrading: boolean;
  sessionID: string;
  isPodReady: boolean;
  /** What only our own instance manager tells. */
  cnpgTs?: LeaseReport & BackupReport & WalReport;
}

/** What a standby knows of its own WAL. */
export interface WalReport {
  /**
   * Whether its positions tell of everything on its disk: after a start they grow up to what was received before. Absent from
   * a primary, and from an older instance manager.
   */
  walEndKnown?: boolean;
}

/** The backups that an instance is taking. */
export interface BackupReport {
  /** UIDs of the Backup objects, up to the moment when their end is written; absent from an older instance manager. */
  backups?: readonly string[];
  /** It looks in the archive what became of in-tree backups that an earlier session of its pod left running, and writes it. */
  endsBackups?: boolean;
}

/** The primary Lease as an instance sees it. */
export interface LeaseReport {
  /** Empty when nobody holds it; absent when it was never read. */
  holder?: string;
  /** How long holder and renewal have been the same, in milliseconds. */
  silentMs?: number;
  /** The promise to a holder that can't renew. */
  grant?: { holder: string; leftMs: number };
}

/** One row of `pg_stat_replication`; every value is text and left out when empty. */
export interface ReplicationInfo {
  applicationName?: string;
  state?: string;
  /** Carries sent_lsn, as the original does. */
  receivedLsn?: string;
  writeLsn?: string;
  flushLsn?: string;
  replayLsn?: string;
  writeLag?: string;
  flushLag?: string;
  replayLag?: string;
  syncState?: string;
  syncPriority?: string;
}

export interface ReplicationSlotInfo {
  slotName?: string;
  plugin?: string;
  slotType?: string;
  datoid?: string;
  database?: string;
  xmin?: string;
  catalogXmin?: string;
  restartLsn?: string;
  walStatus?: string;
  safeWalSize?: number;
  active?: boolean;
}

export interface BasebackupInfo {
  usename: string;
  application_name: string;
  backend_start: string;
  phase: string;
  backup_total: number;
  backup_streamed: number;
  backup_total_pretty: string;
  backup_streamed_pretty: string;
  tablespaces_total: number;
  tablespaces_streamed: number;
}

/** What `status.targetPrimary` says. */
export type TargetPrimary = { kind: "none" } | { kind: "pending" } | { kind: "instance"; name: string };

/** The one place that interprets `status.targetPrimary`. */
export function parseTargetPrimary(value: string | undefined): TargetPrimary {
  if (!value) return { kind: "none" };
  return value === pendingPrimary ? { kind: "pending" } : { kind: "instance", name: value };
}
