// The archiver: answers PostgreSQL's requests, each from the durable record or by an upload, and uploads ahead of them.
import type { ArchiveRecord } from "../barman/archive-record.ts";
import { checkDrain, type DrainLimit, decideArchiveRequest, decideHashedRequest } from "../barman/archive-request.ts";
import { chooseLookAhead, readyNames } from "../barman/look-ahead.ts";
import type { BulkFiles } from "../ports/bulk-files.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/logger.ts";
import type { ObjectStore } from "../ports/object-store.ts";
import { parseWalFileName } from "../postgres/wal-name.ts";
import { type ArchiveOptions, type ArchiveSettings, compileArchiveOptions } from "./archive-settings.ts";
import { BufferPool } from "./buffer-pool.ts";
import { checkEmptyArchive } from "./empty-archive.ts";
import type { ArchiveFailpoint } from "./failpoint.ts";
import { Lanes } from "./lanes.ts";
import { hashFile } from "./object-hash.ts";
import { RecordFolder } from "./record-folder.ts";
import { WalError } from "./wal-error.ts";
import { inPieces, uploadWal } from "./wal-upload.ts";

export interface ArchiverDeps {
  store: ObjectStore;
  files: Files;
  bulk: BulkFiles;
  clock: Clock;
  logger: Logger;
  failpoint?: ArchiveFailpoint;
}

export interface ArchiveRequest {
  /** Absolute path of the WAL file. */
  path: string;
  /** The archive must hold no WAL of anybody else: first archive of a new cluster. @default false */
  checkEmpty?: boolean;
  /** File to remove after a success: the sign that the check above is due. */
  markerPath?: string;
  /** Whether this pod is the current primary right now; without it nothing is uploaded unasked. @default false */
  lookAhead?: boolean;
  /** Only what a former primary shares with the timeline that lives on. */
  drain?: DrainLimit;
}

/** Archives the WAL of one instance into one archive. Make a new one when options or credentials change; close the old one. */
export class WalArchiver {
  readonly #deps: ArchiverDeps;
  readonly #settings: ArchiveSettings;
  readonly #records: RecordFolder;
  readonly #failpoint: ArchiveFailpoint;
  readonly #running = new Map<string, Promise<ArchiveRecord>>();
  readonly #closing = new AbortController();
  /** Files being prepared or sent: more than are sent, so that the next ones are compressed meanwhile. */
  readonly #slots: Lanes;
  readonly #lanes: Lanes;
  /** A file that is compressed in pieces has all cores to itself; others have one each. */
  readonly #cpu: Lanes;
  readonly #buffers: BufferPool;
  /** What the last request allows to be uploaded unasked: nothing, or whatever follows this name. */
  #lookAheadFrom: string | undefined;
  #ready: readonly string[] = [];
  #emptyCheck: Promise<void> = Promise.resolve();
  #emptyForgotten = false;

  constructor(options: ArchiveOptions, deps: ArchiverDeps) {
    this.#deps = deps;
    this.#settings = compileArchiveOptions(options);
    this.#records = new RecordFolder(deps.files, this.#settings.recordFolder);
    this.#failpoint = deps.failpoint ?? (() => undefined);
    const compressing = inPieces(this.#settings.compression) ? 1 : this.#settings.cores;
    this.#slots = new Lanes(this.#settings.lanes + compressing);
    this.#cpu = new Lanes(compressing);
    this.#buffers = new BufferPool(this.#settings.lanes + compressing);
    this.#lanes = new Lanes(this.#settings.lanes);
  }

  /** Resolves when the file is archived; fails with a `WalError`. */
  async archive(request: ArchiveRequest): Promise<void> {
    const name = request.path.slice(request.path.lastIndexOf("/") + 1);
    if (!parseWalFileName(name)) throw new WalError("badName", `${JSON.stringify(name)} is not the name of a WAL file`);
    const refused = request.drain ? checkDrain(name, request.drain) : null;
    if (refused !== null) throw new WalError("conflict", `not archived from a former primary: ${refused}`);
    this.#lookAheadFrom = undefined;
    try {
      await this.#checkEmpty(request.checkEmpty ?? false);
      // Until the marker is gone one file at a time is sent, so that a crash leaves at most that one to be told from foreign WAL.
      if (request.lookAhead && !request.checkEmpty) this.#lookAheadFrom = name;
      await this.#serve(name, request.path);
      if (request.markerPath !== undefined) await this.#deps.files.remove(request.markerPath);
      await this.#failpoint("markerRemoved", name);
    } catch (error) {
      throw WalError.from(`cannot archive ${name}`, error);
    }
    void this.#dropSpentRecords(name);
    await this.#failpoint("answered", name);
  }

  /** Stops uploading unasked and waits until what runs has ended. */
  async close(): Promise<void> {
    this.#lookAheadFrom = undefined;
    this.#closing.abort(new Error("the archiver is being closed"));
    await Promise.allSettled(this.#running.values());
  }

  async #serve(name: string, path: string): Promise<void> {
    const joined = this.#running.get(name);
    // An upload of it that runs ahead may fail; then it is this request's own turn.
    if (joined) await joined.catch(() => undefined);
    const file = await this.#deps.bulk.stat(path);
    if (!file) throw new WalError("local", `cannot archive ${name}: ${path} does not exist`);
    const record = await this.#records.get(name);
    const { target, systemId } = this.#settings;
    let decision = decideArchiveRequest(record, file, { name, target, systemId });
    if (decision.kind === "hash" && record) {
      decision = decideHashedRequest(record, await hashFile(this.#deps.bulk, path));
      if (decision.kind === "acknowledged") await this.#records.put({ ...record, ...file });
    }
    if (decision.kind === "acknowledged") {
      this.#deps.logger.info("WAL file already archived, skipping", { walName: path });
      await this.#lookAhead();
      return;
    }
    if (decision.kind === "upload" && decision.discardRecord) await this.#records.remove(name);
    const upload = this.#start(name, path, true);
    await Promise.all([upload, this.#lookAhead()]);
  }

  /** Starts an upload, or joins the one that runs. */
  #start(name: string, path: string, asked: boolean): Promise<ArchiveRecord> {
    const running = this.#running.get(name);
    if (running) return running;
    // What PostgreSQL waits for keeps a lane from its first byte on, so that no look-ahead sends in front of it.
    const work = () =>
      asked ? this.#lanes.run(() => this.#upload(name, path, true), { urgent: true }) : this.#upload(name, path, false);
    const upload = this.#slots.run(work, { urgent: asked });
    this.#running.set(name, upload);
    const done = () => {
      this.#running.delete(name);
      // Its place is free for the next one.
      void this.#lookAhead();
    };
    upload.then(done, () => this.#running.delete(name));
    return upload;
  }

  async #upload(name: string, path: string, asked: boolean): Promise<ArchiveRecord> {
    const { store, bulk, clock, logger } = this.#deps;
    this.#closing.signal.throwIfAborted();
    const startMs = clock.now();
    const startedAt = clock.monotonicMs();
    logger.info("Executing barman-cloud-wal-archive", { walName: path, options: [...this.#settings.logOptions, path] });
    const uploaded = await uploadWal(name, path, this.#settings, {
      store,
      bulk,
      failpoint: this.#failpoint,
      signal: this.#closing.signal,
      buffers: this.#buffers,
      cpu: (compress) => this.#cpu.run(compress, { urgent: asked }),
      lane: (send) => (asked ? send() : this.#lanes.run(send)),
    });
    const { state, created: _created, ...facts } = uploaded;
    const record: ArchiveRecord = { name, target: this.#settings.target, ...state, ...facts };
    try {
      await this.#records.put(record);
    } catch (error) {
      // A full disk must not stop archiving, which is what frees it. The store has confirmed this file, so the answer
      // that is waited for is true without a record; one that nobody waits for is simply asked for later.
      if (!asked) throw error;
      logger.warning("Could not record an archived WAL file", { walName: path, error });
    }
    await this.#failpoint("recorded", name);
    logger.info(asked ? "Archived WAL file" : "Pre-archived WAL file (parallel)", {
      walName: path,
      startTime: new Date(startMs).toISOString(),
      endTime: new Date(clock.now()).toISOString(),
      elapsedWalTime: (clock.monotonicMs() - startedAt) / 1000,
    });
    return record;
  }

  /** Fills the free places with segments that wait behind the requested one. What goes wrong here is nobody's answer. */
  async #lookAhead(): Promise<void> {
    try {
      await this.#startAhead();
    } catch (error) {
      this.#deps.logger.warning("Could not look for WAL files to archive ahead", { error });
    }
  }

  async #startAhead(): Promise<void> {
    const requested = this.#lookAheadFrom;
    if (requested === undefined || this.#settings.lookAhead === 0) return;
    const taken = new Set([...this.#running.keys(), ...(await this.#records.names())]);
    const view = { requested, taken, ahead: this.#settings.lookAhead };
    let chosen = chooseLookAhead({ ...view, ready: this.#ready });
    if (chosen.length === 0) {
      this.#ready = readyNames(await this.#deps.files.list(`${this.#settings.walFolder}/archive_status`));
      chosen = chooseLookAhead({ ...view, ready: this.#ready });
    }
    // The request may have changed while the folder was read.
    if (this.#lookAheadFrom !== requested || this.#closing.signal.aborted) return;
    for (const name of chosen) {
      const path = `${this.#settings.walFolder}/${name}`;
      this.#start(name, path, false).catch((error: unknown) => {
        this.#deps.logger.warning("Could not archive a WAL file ahead; it is tried again when PostgreSQL asks for it", {
          walName: path,
          error,
        });
      });
    }
  }

  /** One check at a time; what passed is on disk before the first upload, so that our own bytes never count as foreign. */
  #checkEmpty(wanted: boolean): Promise<void> {
    const check = this.#emptyCheck.then(() => this.#checkEmptyNow(wanted));
    this.#emptyCheck = check.catch(() => undefined);
    return check;
  }

  async #checkEmptyNow(wanted: boolean): Promise<void> {
    const { keys, serverName, target, walFolder } = this.#settings;
    if (!wanted) {
      // The next marker is that of another beginning, and asks for a check of its own.
      if (!this.#emptyForgotten) await this.#records.forgetEmpty();
      this.#emptyForgotten = true;
      return;
    }
    this.#emptyForgotten = false;
    if (await this.#records.wasEmpty(target)) return;
    const { store, files, bulk, logger } = this.#deps;
    logger.info("Checking backup destination with barman-cloud-wal-archive", { serverName });
    await checkEmptyArchive(keys, serverName, walFolder, { store, files, bulk, signal: this.#closing.signal });
    await this.#records.noteEmpty(target);
    await this.#failpoint("emptyChecked", "");
  }

  /** A record is of use as long as PostgreSQL may ask again. */
  async #dropSpentRecords(answered: string): Promise<void> {
    const { files, logger } = this.#deps;
    try {
      for (const name of await this.#records.names()) {
        if (name === answered || this.#running.has(name)) continue;
        const ready = await files.exists(`${this.#settings.walFolder}/archive_status/${name}.ready`);
        if (!ready) await this.#records.remove(name);
      }
    } catch (error) {
      logger.debug("Could not remove records of archived WAL files", { error });
    }
  }
}
