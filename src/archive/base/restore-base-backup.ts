// A base backup out of the archive into folders: found, its archives checked for completeness, extracted side by side, links to
// tablespaces made, all of it synced. The control file comes last, so that a folder with one holds a complete restore; what
// a failed restore had written is removed.
import type { BackupInfo, BackupTablespace } from "../../barman/backup-info.ts";
import type { CatalogBackup } from "../../barman/catalog.ts";
import { controlFilePath } from "../../barman/copy-rules.ts";
import { serverKeys } from "../../barman/object-keys.ts";
import { decompress } from "../../store/codecs.ts";
import { Lanes } from "../lanes.ts";
import { readAhead } from "../read-ahead.ts";
import { type BackupArchive, listArchives } from "./backup-archives.ts";
import { tablespaceFolder } from "./backup-items.ts";
import { BaseError } from "./base-error.ts";
import { Extractor, type HeldFile } from "./extract-tar.ts";
import { findBaseBackup } from "./find-base-backup.ts";
import { resumableBody } from "./resumable-body.ts";
import { claimFolder, emptyFolder, syncTree } from "./target-folders.ts";
import type { BaseRestoreDeps, BaseRestoreRequest, BaseRestoreResult } from "./types.ts";

/** Chunks that wait for the codec; those of a socket have 64 KiB. */
const downloadedAhead = 32;
/** Chunks that wait to be written; those of a codec have a megabyte at most. */
const decompressedAhead = 2;

/** Restores a base backup into empty folders. After a failure they are empty again; every failure is a `BaseError`. */
export async function restoreBaseBackup(
  deps: BaseRestoreDeps,
  request: BaseRestoreRequest,
): Promise<BaseRestoreResult> {
  const signal = request.signal ?? new AbortController().signal;
  try {
    return await new BaseRestore(deps, request, signal).run();
  } catch (error) {
    throw BaseError.from(`cannot restore base backup ${request.backupId} of ${request.serverName}`, error, signal);
  }
}

class BaseRestore {
  readonly #deps: BaseRestoreDeps;
  readonly #request: BaseRestoreRequest;
  readonly #signal: AbortSignal;

  constructor(deps: BaseRestoreDeps, request: BaseRestoreRequest, signal: AbortSignal) {
    this.#deps = deps;
    this.#request = request;
    this.#signal = signal;
  }

  get #sync(): boolean {
    return this.#request.sync ?? true;
  }

  async run(): Promise<BaseRestoreResult> {
    const { store } = this.#deps;
    const backup = await findBaseBackup(store, this.#request, this.#request.backupId, this.#signal);
    const keys = serverKeys(this.#request.path, this.#request.serverName);
    const archives = await listArchives(store, keys, backup, this.#signal);
    const tablespaces = this.#targets(backup.info);
    await this.#step("backupFound", backup.id);

    const folders = [this.#request.dataFolder, ...tablespaces.map(({ location }) => location)];
    // All are looked at before the first one is filled.
    const claimed: string[] = [];
    for (const folder of folders) claimed.push(await claimFolder(this.#deps.tree, folder));
    try {
      return await this.#fill(backup, archives, tablespaces);
    } catch (error) {
      this.#deps.logger.warning("removing what the failed restore has written", { backupId: backup.id });
      for (const folder of claimed) {
        await emptyFolder(this.#deps.tree, folder).catch((failure: unknown) => {
          this.#deps.logger.warning("cannot empty a folder of the failed restore", { folder, err: String(failure) });
        });
      }
      throw error;
    }
  }

  #targets(info: BackupInfo): BackupTablespace[] {
    const { dataFolder, tablespaces: moved = {} } = this.#request;
    const known = info.tablespaces ?? [];
    const unknown = Object.keys(moved).find((name) => !known.some((space) => space.name === name));
    if (unknown !== undefined) throw new BaseError("invalid", `the backup has no tablespace ${unknown}`);
    return known.map(({ name, oid, location }) => {
      return { name, oid, location: moved[name] ?? tablespaceFolder(dataFolder, location) };
    });
  }

  async #fill(
    backup: CatalogBackup,
    archives: ReadonlyMap<string, readonly BackupArchive[]>,
    tablespaces: readonly BackupTablespace[],
  ): Promise<BaseRestoreResult> {
    const { tree } = this.#deps;
    const { dataFolder } = this.#request;
    const common = { tree, syncEarly: this.#sync, signal: this.#signal };
    const data = new Extractor({ ...common, folder: dataFolder, holdBack: controlFilePath });
    const spaces = tablespaces.map(({ oid, location }) => {
      return { name: String(oid), extractor: new Extractor({ ...common, folder: location }) };
    });
    const lanes = new Lanes(Math.max(1, this.#request.jobs ?? 2));
    const all = [...spaces, { name: "data", extractor: data }].map(({ name, extractor }) =>
      lanes.run(async () => {
        for (const archive of archives.get(name) ?? []) await this.#extract(archive, extractor);
        await this.#step(name === "data" ? "dataRestored" : "tablespaceRestored", backup.id);
      }),
    );
    // Every one is waited for: nothing may be written any more when the folders are emptied.
    const failed = (await Promise.allSettled(all)).find((outcome) => outcome.status === "rejected");
    if (failed) throw failed.reason;

    await this.#linkTablespaces(tablespaces);
    if (!(await tree.stat(`${dataFolder}/pg_wal`))) await tree.makeDirectory(`${dataFolder}/pg_wal`, 0o700);
    await this.#step("linksMade", backup.id);
    await this.#finish(backup, data.held, tablespaces);
    const extractors = [data, ...spaces.map(({ extractor }) => extractor)];
    const files = extractors.reduce((sum, extractor) => sum + extractor.files, 0);
    const bytes = extractors.reduce((sum, extractor) => sum + extractor.bytes, 0);
    this.#deps.logger.info("the base backup is restored", { backupId: backup.id, files, bytes });
    return { backupId: backup.id, info: backup.info, files, bytes, tablespaces };
  }

  async #extract(archive: BackupArchive, extractor: Extractor): Promise<void> {
    const { store, clock, logger } = this.#deps;
    const body = resumableBody(archive, { store, clock, logger, signal: this.#signal });
    try {
      // The store sends, the codec works and the files are written at the same time.
      const compressed = readAhead(body, downloadedAhead);
      await extractor.extract(readAhead(decompress(compressed, archive.compression), decompressedAhead));
    } catch (error) {
      throw BaseError.from(`${store.location}/${archive.key}`, error, this.#signal);
    }
  }

  async #linkTablespaces(tablespaces: readonly BackupTablespace[]): Promise<void> {
    const { tree } = this.#deps;
    const folder = `${this.#request.dataFolder}/pg_tblspc`;
    if (tablespaces.length > 0) await tree.makeDirectory(folder, 0o700);
    for (const { oid, location } of tablespaces) {
      const link = `${folder}/${oid}`;
      // A tablespace inside the data folder, as only tests have one, needs no link to itself.
      if (link === location) continue;
      await tree.remove(link);
      await tree.symlink(location, link);
    }
  }

  async #finish(
    backup: CatalogBackup,
    control: HeldFile | undefined,
    tablespaces: readonly BackupTablespace[],
  ): Promise<void> {
    const { tree } = this.#deps;
    const { dataFolder } = this.#request;
    if (!control) throw new BaseError("damaged", `the archives of ${backup.id} hold no ${controlFilePath}`);
    if (!(await tree.stat(`${dataFolder}/backup_label`))) {
      throw new BaseError("damaged", `the archives of ${backup.id} hold no backup_label`);
    }
    const sync = this.#sync;
    if (sync) {
      for (const { location } of tablespaces) await syncTree(tree, location, this.#signal);
      await syncTree(tree, dataFolder, this.#signal);
    }
    await this.#step("treeSynced", backup.id);
    const sink = await tree.create(`${dataFolder}/${controlFilePath}`, control.mode);
    try {
      await sink.write(control.bytes);
    } finally {
      await sink.close({ sync, mtimeNs: control.mtimeNs });
    }
    if (sync) await tree.sync(`${dataFolder}/global`);
  }

  async #step(step: Parameters<NonNullable<BaseRestoreDeps["failpoint"]>>[0], id: string): Promise<void> {
    await this.#deps.failpoint?.(step, id);
    this.#signal.throwIfAborted();
  }
}
