// What base backups and base restores take and give: the interface of this folder to the plugin, to the in-tree path and to
// the recovery job.
import type { BackupInfo, BackupTablespace } from "../../barman/backup-info.ts";
import type { CompressionName } from "../../barman/compression.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import type { TreeFiles } from "../../ports/tree-files.ts";
import type { BaseFailpoint } from "./failpoint.ts";

/** Where the archive of one server lies inside a store. */
export interface ArchivePlace {
  /** Path inside the bucket. */
  path: string;
  serverName: string;
}

export interface BaseBackupDeps {
  /** Made with the encryption of base backups (`data.encryption`). */
  store: ObjectStore;
  tree: TreeFiles;
  clock: Clock;
  logger: Logger;
  /** Opens a session of a superuser on the server to copy, database `postgres`, without any time limit for queries. The backup closes it. */
  connect(signal?: AbortSignal): Promise<SqlSession>;
  /**
   * Makes the primary close its current WAL segment; called when the server is a standby, which cannot do it. May be called
   * again. Without it, the backup waits until the primary's work or its archive_timeout does it.
   */
  switchPrimaryWal?(signal: AbortSignal): Promise<void>;
  failpoint?: BaseFailpoint;
}

export interface BaseBackupRequest extends ArchivePlace {
  /** For example `backup-20260501101112`. */
  backupName: string;
  /** Whether the first checkpoint is done at once. @default false */
  immediateCheckpoint?: boolean | undefined;
  compression?: CompressionName | undefined;
  /** @default a level of the format that keeps up with the network */
  compressionLevel?: number | undefined;
  /** Parts under way at once. @default 2 */
  jobs?: number | undefined;
  tags?: Readonly<Record<string, string>> | undefined;
  /** Compressed bytes after which the next file begins a new archive; more than the default takes more memory. @default 24 GiB */
  maxArchiveBytes?: number | undefined;
  /** Least bytes of a part. @default 5 MiB */
  minPartBytes?: number | undefined;
  /** Most bytes sent in a second. @default no limit */
  maxBandwidthBytes?: number | undefined;
  /** How long one request to the store is tried again while it fails in a way that may pass. @default 5 minutes */
  storePatienceMs?: number | undefined;
  /** Longest wait for the archive to hold all WAL that the backup needs. @default 6 hours */
  walTimeoutMs?: number | undefined;
  /** Time between two signs of life on the session; 0 sends none. @default 60000 */
  keepaliveMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A backup that is complete: its status in the archive is DONE. */
export interface BaseBackupResult {
  backupId: string;
  backupName: string;
  /** Milliseconds since the epoch. */
  startedAtMs: number;
  stoppedAtMs: number;
  beginWal: string;
  endWal: string;
  /** `X/Y`. */
  beginLsn: string;
  endLsn: string;
  timeline: number;
  systemId: string;
  /** As `server_version_num`. */
  serverVersion: number;
  backupLabel: string;
  /** Empty without tablespaces. */
  tablespaceMap: string;
  tablespaces: readonly BackupTablespace[];
  fromStandby: boolean;
  /** Bytes of all archives as stored. */
  storedBytes: number;
  info: BackupInfo;
}

export interface BaseRestoreDeps {
  store: ObjectStore;
  tree: TreeFiles;
  clock: Clock;
  logger: Logger;
  failpoint?: BaseFailpoint;
}

export interface BaseRestoreRequest extends ArchivePlace {
  /** ID, name, or a word like `latest`; see `findBaseBackup` for the choice by a target. */
  backupId: string;
  /** Made when it is not there; must be empty otherwise. */
  dataFolder: string;
  /** New folders of tablespaces, by name; the others go where they were. */
  tablespaces?: Readonly<Record<string, string>> | undefined;
  /** Archives extracted at once. @default 2 */
  jobs?: number | undefined;
  /** Whether every file is made durable before the restore is reported. @default true */
  sync?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

export interface BaseRestoreResult {
  backupId: string;
  info: BackupInfo;
  files: number;
  /** Bytes of all files. */
  bytes: number;
  /** Where each tablespace went. */
  tablespaces: readonly BackupTablespace[];
}

/**
 * `notFound`: the archive certainly holds no such backup, or not all of it. `notEmpty`: a target folder holds something.
 * `unavailable`, `denied`: the store cannot be used now, and nothing is known. `walMissing`: WAL that the backup needs is not in the
 * archive yet. `damaged`: an archive is not what it should be. `postgres`: the server refused or went away. `cancelled`: the
 * caller's signal. `local`: files of this machine. `invalid`: the request makes no sense.
 */
export type BaseFailureKind =
  | "notFound"
  | "notEmpty"
  | "unavailable"
  | "denied"
  | "walMissing"
  | "damaged"
  | "postgres"
  | "cancelled"
  | "local"
  | "invalid";

/** Takes a base backup of the server behind `deps.connect`; see `take-base-backup.ts`. Every failure is a `BaseError`. */
export type TakeBaseBackup = (deps: BaseBackupDeps, request: BaseBackupRequest) => Promise<BaseBackupResult>;

/** Restores a base backup into folders; see `restore-base-backup.ts`. Every failure is a `BaseError`. */
export type RestoreBaseBackup = (deps: BaseRestoreDeps, request: BaseRestoreRequest) => Promise<BaseRestoreResult>;
