import { type BackupTarget, chooseBackup } from "../../barman/backup-choice.ts";
import { type CatalogBackup, findBackup, isDone } from "../../barman/catalog.ts";
import { neededWalOf } from "../../barman/needed-wal.ts";
import { serverKeys } from "../../barman/object-keys.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import { readCatalog, readHistories } from "../archive-reader.ts";
import { BaseError } from "./base-error.ts";
import { readMissingWal } from "./needed-wal.ts";
import type { ArchivePlace } from "./types.ts";

/** Finds a backup that can be restored, by its ID, its name, or a word like `latest`. */
export async function findBaseBackup(
  store: ObjectStore,
  place: ArchivePlace,
  wanted: string,
  signal?: AbortSignal,
): Promise<CatalogBackup> {
  return guarded(`cannot find base backup ${wanted} of ${place.serverName}`, signal, async () => {
    const catalog = await readCatalog(store, serverKeys(place.path, place.serverName), signal);
    const found = findBackup(catalog, wanted);
    if (found.kind !== "found") {
      if (found.kind === "ambiguous") throw new BaseError("invalid", found.message);
      const unreadable = catalog.unreadable.find(({ id }) => id === wanted);
      const why = unreadable ? `: its backup.info cannot be read: ${unreadable.reason}` : "";
      throw new BaseError(unreadable ? "damaged" : "notFound", `${found.message}${why} in ${store.location}`);
    }
    if (isDone(found.backup)) return found.backup;
    const { id, info } = found.backup;
    throw new BaseError("notFound", `base backup ${id} cannot be restored: its status is ${info.status}`);
  });
}

/** Chooses the backup to restore for what a recovery aims at. */
export async function chooseBaseBackup(
  store: ObjectStore,
  place: ArchivePlace,
  target: BackupTarget,
  signal?: AbortSignal,
): Promise<CatalogBackup> {
  return guarded(`cannot choose a base backup of ${place.serverName}`, signal, async () => {
    const keys = serverKeys(place.path, place.serverName);
    const catalog = await readCatalog(store, keys, signal);
    const histories = target.backupId === undefined ? await readHistories(store, keys, signal) : new Map();
    const choice = chooseBackup(catalog, target, histories);
    if (choice.kind === "chosen") return choice.backup;
    throw new BaseError("notFound", `${choice.message} in ${store.location}`);
  });
}

/**
 * Checks that the archive holds all WAL that a backup needs to become consistent. What is missing fails with `walMissing`, which
 * may be tried again: a source that is alive may still archive the last segment.
 */
export async function checkWalOfBackup(
  store: ObjectStore,
  place: ArchivePlace,
  backup: CatalogBackup,
  signal?: AbortSignal,
): Promise<void> {
  await guarded(`cannot check the WAL of base backup ${backup.id}`, signal, async () => {
    const needed = neededWalOf(backup.info);
    if (!needed) throw new BaseError("damaged", `the backup.info of ${backup.id} does not tell which WAL it needs`);
    const missing = await readMissingWal(store, serverKeys(place.path, place.serverName), needed, signal);
    if (missing.length === 0) return;
    throw new BaseError(
      "walMissing",
      `base backup ${backup.id} of ${place.serverName} needs ${missing.length} WAL segments that are not in ${store.location} yet, the first being ${missing[0]}`,
    );
  });
}

async function guarded<T>(attempt: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw BaseError.from(attempt, error, signal);
  }
}
