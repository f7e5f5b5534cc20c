// A base backup from its begin to its end: one session of PostgreSQL, the folders into archives, the label, the WAL, and the
// `backup.info` that calls it DONE only when all of it is in the archive.
import type { BackupInfo } from "../../barman/backup-info.ts";
import { formatBackupInfo } from "../../barman/backup-info.ts";
import { barmanTimeMs } from "../../barman/barman-time.ts";
import { compressions } from "../../barman/compression.ts";
import { checkBackupName, formatBackupId, type ServerKeys, serverKeys } from "../../barman/object-keys.ts";
import { chooseUploadSizes } from "../../barman/upload-sizes.ts";
import type { Logger } from "../../ports/logger.ts";
import { listAll } from "../../ports/object-store.ts";
import type { SqlSession } from "../../ports/sql-session.ts";
import { formatLsn } from "../../postgres/lsn.ts";
import { dataItems, tablespaceFolder, tablespaceItems } from "./backup-items.ts";
import {
  type BackupEnd,
  beginBackup,
  endBackup,
  markEnd,
  readServerFacts,
  type ServerFacts,
} from "./backup-session.ts";
import { BaseError } from "./base-error.ts";
import { CopyClock } from "./copy-clock.ts";
import { type BackupProgress, doneInfo, failedInfo, startedInfo } from "./describe-backup.ts";
import type { BaseFailpoint } from "./failpoint.ts";
import { KeptAlive } from "./kept-alive.ts";
import { waitForWal } from "./needed-wal.ts";
import { StorePatience } from "./store-patience.ts";
import type { BaseBackupDeps, BaseBackupRequest, BaseBackupResult } from "./types.ts";
import { type ArchiveUpload, uploadArchives } from "./upload-archives.ts";

const sixHoursMs = 6 * 60 * 60_000;
const minuteMs = 60_000;
const fiveMinutesMs = 5 * minuteMs;
/** How long the last word about a failed backup may take. */
const lastWordMs = 60_000;

/** Takes a base backup. Resolves when it is DONE and the archive holds all WAL it needs; every failure is a `BaseError`. */
export async function takeBaseBackup(deps: BaseBackupDeps, request: BaseBackupRequest): Promise<BaseBackupResult> {
  const attempt = `cannot take base backup ${request.backupName} of ${request.serverName}`;
  const wrong = checkRequest(request);
  if (wrong !== null) throw new BaseError("invalid", `${attempt}: ${wrong}`);
  const ended = new AbortController();
  const stop = () => ended.abort(request.signal?.reason);
  if (request.signal?.aborted) stop();
  request.signal?.addEventListener("abort", stop, { once: true });
  try {
    const session = await openSession(deps, ended.signal);
    try {
      return await new BaseBackup(deps, request, session, ended).run();
    } finally {
      // Also the end of a backup that was not ended: PostgreSQL forgets it with its session.
      await session.close();
    }
  } catch (error) {
    throw BaseError.from(attempt, error, request.signal);
  } finally {
    request.signal?.removeEventListener("abort", stop);
    ended.abort(new Error("the base backup has ended"));
  }
}

function checkRequest({ backupName, compression }: BaseBackupRequest): string | null {
  if (compression && !compressions[compression].base) return `base backups are not compressed by ${compression}`;
  return checkBackupName(backupName);
}

async function openSession(deps: BaseBackupDeps, signal: AbortSignal): Promise<SqlSession> {
  try {
    return await deps.connect(signal);
  } catch (error) {
    signal.throwIfAborted();
    throw asPostgres(error);
  }
}

function asPostgres(error: unknown): BaseError {
  if (error instanceof BaseError) return error;
  return new BaseError("postgres", error instanceof Error ? error.message : String(error), error);
}

class BaseBackup {
  readonly #deps: BaseBackupDeps;
  readonly #request: BaseBackupRequest;
  readonly #session: SqlSession;
  readonly #ended: AbortController;
  readonly #signal: AbortSignal;
  readonly #keys: ServerKeys;
  readonly #logger: Logger;
  readonly #failpoint: BaseFailpoint;
  readonly #copy: CopyClock;
  readonly #patience: StorePatience;
  #keptAlive: KeptAlive | undefined;
  #storedBytes = 0;

  constructor(deps: BaseBackupDeps, request: BaseBackupRequest, session: SqlSession, ended: AbortController) {
    this.#deps = deps;
    this.#request = request;
    this.#session = session;
    this.#ended = ended;
    this.#signal = ended.signal;
    this.#keys = serverKeys(request.path, request.serverName);
    this.#logger = deps.logger;
    this.#failpoint = deps.failpoint ?? (() => undefined);
    this.#copy = new CopyClock(deps.clock);
    const patienceMs = request.storePatienceMs ?? fiveMinutesMs;
    this.#patience = new StorePatience({ clock: deps.clock, logger: deps.logger, patienceMs, signal: this.#signal });
  }

  async run(): Promise<BaseBackupResult> {
    const facts = await this.#ask(() => readServerFacts(this.#session));
    const id = await this.#chooseId();
    const label = `Barman backup cloud ${id}`;
    const fast = this.#request.immediateCheckpoint ?? false;
    this.#logger.info("starting the base backup", { backupId: id, fromStandby: facts.inRecovery, fast });
    const begin = await this.#ask(() => beginBackup(this.#session, facts, { label, fast }));
    const progress: BackupProgress = { facts, begin };
    let action = "uploading backup.info file";
    try {
      await this.#failpoint("backupStarted", id);
      await this.#writeInfo(id, startedInfo(progress), { ifAbsent: true });
      await this.#failpoint("startedInfoWritten", id);
      action = "uploading data";
      const end = await this.#copyAll(id, progress);
      await this.#waitForWal(progress, end);
      await this.#failpoint("walArchived", id);
      const info = doneInfo({ ...progress, end }, this.#request.backupName, this.#copy.stats(this.#jobs));
      action = "uploading backup.info file";
      await this.#patience.run(() => this.#writeInfo(id, info));
      await this.#failpoint("doneInfoWritten", id);
      this.#logger.info("the base backup is complete", { backupId: id, storedBytes: this.#storedBytes });
      return this.#result(id, progress, end, info);
    } catch (error) {
      const cause = this.#keptAlive?.lost ?? (this.#signal.aborted ? this.#signal.reason : error);
      await this.#writeFailure(id, failedInfo(progress, this.#request.backupName, action, cause));
      throw this.#keptAlive?.lost ?? error;
    } finally {
      void this.#keptAlive?.stop();
    }
  }

  get #jobs(): number {
    return Math.max(1, this.#request.jobs ?? 2);
  }

  async #ask<T>(query: () => Promise<T>): Promise<T> {
    try {
      return await query();
    } catch (error) {
      this.#signal.throwIfAborted();
      throw asPostgres(error);
    }
  }

  /** The second of the begin; the next one when the archive has a backup of that second already. */
  async #chooseId(): Promise<string> {
    for (;;) {
      const id = formatBackupId(this.#deps.clock.now());
      const folder = this.#keys.backupFolder(id);
      const { objects } = await listAll(this.#deps.store, folder, { pageSize: 1, signal: this.#signal });
      if (objects.length === 0) return id;
      await this.#deps.clock.sleep(250, this.#signal);
    }
  }

  async #copyAll(id: string, progress: BackupProgress): Promise<BackupEnd> {
    const { facts } = progress;
    const { tree } = this.#deps;
    this.#keptAlive = new KeptAlive(
      this.#session,
      this.#deps.clock,
      this.#request.keepaliveMs ?? minuteMs,
      this.#ended,
    );
    for (const { name, oid, location } of facts.tablespaces) {
      const folder = await tree.resolve(tablespaceFolder(facts.dataFolder, location));
      const items = tablespaceItems(tree, folder, facts.serverVersion, this.#signal);
      await this.#upload(id, String(oid), name, facts, items);
      await this.#failpoint("tablespaceCopied", id);
    }
    const steps = {
      treeCopied: async () => this.#failpoint("dataCopied", id),
      endBackup: async () => {
        await this.#failpoint("controlFileCopied", id);
        progress.end = await this.#endBackup(id, progress);
        await this.#failpoint("backupStopped", id);
        return progress.end.label;
      },
    };
    await this.#upload(id, "data", "data", facts, dataItems(tree, facts, this.#signal, steps));
    await this.#failpoint("archivesClosed", id);
    if (!progress.end) throw new BaseError("local", "the copy ended without the end of the backup");
    return progress.end;
  }

  async #upload(
    id: string,
    name: string,
    item: string,
    facts: ServerFacts,
    items: Parameters<typeof uploadArchives>[1],
  ): Promise<void> {
    const { compression, compressionLevel, maxBandwidthBytes, tags = {} } = this.#request;
    const upload: ArchiveUpload = {
      store: this.#deps.store,
      clock: this.#deps.clock,
      keys: this.#keys,
      backupId: id,
      compression,
      compressionLevel,
      sizes: chooseUploadSizes({ ...this.#request, jobs: this.#jobs, expectedBytes: facts.clusterBytes }),
      maxBandwidthBytes,
      tags,
      again: this.#patience.again,
      signal: this.#signal,
    };
    const { archives, files, bytes, storedBytes } = await this.#copy.measure(item, () =>
      uploadArchives(name, items, upload),
    );
    this.#storedBytes += storedBytes;
    this.#logger.info("a folder is in the archive", {
      backupId: id,
      folder: item,
      archives,
      files,
      bytes,
      storedBytes,
    });
  }

  /** The heartbeat ends before: two queries at once would queue, and a late one would meet a closed session. */
  async #endBackup(id: string, { facts, begin }: BackupProgress): Promise<BackupEnd> {
    await this.#keptAlive?.stop();
    const end = await this.#ask(() => endBackup(this.#session, facts, begin));
    if (facts.inRecovery) return end;
    await markEnd(this.#session, id).catch((error: unknown) => {
      this.#logger.warning("cannot mark the end of the base backup", { backupId: id, err: String(error) });
    });
    return end;
  }

  async #waitForWal({ facts, begin }: BackupProgress, end: BackupEnd): Promise<void> {
    const { store, clock, switchPrimaryWal } = this.#deps;
    const needed = {
      beginTimeline: begin.timeline,
      beginLsn: begin.lsn,
      endTimeline: end.timeline,
      // The end of a standby's backup is its minimum recovery point, written after the copied control file's.
      endLsn: end.lsn,
      segmentBytes: facts.segmentBytes,
    };
    await waitForWal(needed, {
      store,
      keys: this.#keys,
      clock,
      logger: this.#logger,
      timeoutMs: this.#request.walTimeoutMs ?? sixHoursMs,
      signal: this.#signal,
      switchWal: facts.inRecovery && switchPrimaryWal ? (signal) => switchPrimaryWal(signal) : undefined,
    });
  }

  async #writeInfo(id: string, info: BackupInfo, options: { ifAbsent?: boolean; signal?: AbortSignal } = {}) {
    const { tags = {} } = this.#request;
    const body = Buffer.from(formatBackupInfo(info));
    await this.#deps.store.put(this.#keys.backupInfo(id), [body], { tags, signal: this.#signal, ...options });
  }

  /** Says FAILED even when the caller has no more time for the backup itself; that it cannot be said is no news to the caller. */
  async #writeFailure(id: string, info: BackupInfo): Promise<void> {
    const limit = new AbortController();
    const done = new AbortController();
    const late = this.#deps.clock.sleep(lastWordMs, done.signal).then(
      () => limit.abort(new Error("no answer in time")),
      () => undefined,
    );
    try {
      await this.#writeInfo(id, info, { signal: limit.signal });
    } catch (error) {
      this.#logger.warning("cannot mark the base backup as failed", { backupId: id, err: String(error) });
    } finally {
      done.abort();
      await late;
    }
  }

  #result(id: string, { facts, begin }: BackupProgress, end: BackupEnd, info: BackupInfo): BaseBackupResult {
    return {
      backupId: id,
      backupName: this.#request.backupName,
      startedAtMs: barmanTimeMs(begin.time),
      stoppedAtMs: barmanTimeMs(end.time),
      beginWal: info.beginWal ?? "",
      endWal: info.endWal ?? "",
      beginLsn: formatLsn(begin.lsn),
      endLsn: formatLsn(end.lsn),
      timeline: begin.timeline,
      systemId: facts.systemId,
      serverVersion: facts.serverVersion,
      backupLabel: end.label,
      tablespaceMap: end.tablespaceMap,
      tablespaces: facts.tablespaces,
      fromStandby: facts.inRecovery,
      storedBytes: this.#storedBytes,
      info,
    };
  }
}
