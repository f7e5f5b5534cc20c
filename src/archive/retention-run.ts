import type { BackupCatalog, CatalogBackup } from "../barman/catalog.ts";
import { parseTarName, type ServerKeys } from "../barman/object-keys.ts";
import {
  announcedBound,
  planRetention,
  planWalRetention,
  type RetentionOptions,
  type RetentionPolicy,
} from "../barman/retention.ts";
import { listAll, type ObjectStore } from "../ports/object-store.ts";
import { listWalObjects } from "./archive-reader.ts";

const deleteBatch = 1000;
/** An upload that goes on this long is none any more: the process that began it has died. */
const staleUploadMs = 86_400_000;

export interface RetentionOutcome {
  /** IDs of the backups that were removed, oldest first, with the reason. */
  removed: readonly { id: string; reason: string }[];
  kept: readonly CatalogBackup[];
  walRemoved: number;
  /** First segment that must stay; undefined when no backup is left. */
  firstRequiredWal: string | undefined;
  /** Uploads of this server that died on their way and are ended now; undefined when the store does not let us look for them. */
  uploadsEnded: number | undefined;
}

/** Removes what a policy no longer needs: backups oldest first, each one's tars before its `backup.info`, then the WAL. */
export async function runRetention(
  store: ObjectStore,
  keys: ServerKeys,
  catalog: BackupCatalog,
  policy: RetentionPolicy,
  options: RetentionOptions & {
    signal?: AbortSignal;
    /** A segment that was announced as needed; WAL at or after its position stays, on any timeline. */
    keepFrom?: string;
  },
): Promise<RetentionOutcome> {
  const plan = planRetention(catalog, policy, options);
  if (plan.kind === "refused") throw new Error(plan.reason);
  for (const { id } of plan.backups) await removeBackup(store, keys, id, options.signal);
  const removed = new Set(plan.backups.map(({ id }) => id));
  const wal = planWalRetention(catalog.backups, removed);
  const keepFrom = announcedBound(options.keepFrom, catalog.backups, removed);
  const isObsolete = (name: string) =>
    wal.isObsolete(name) && (keepFrom === undefined || name.slice(8, 24) < keepFrom.slice(8, 24));
  const walRemoved = plan.backups.length === 0 ? 0 : await removeWal(store, keys, isObsolete, options.signal);
  // They only take room, so that they stay is no failure; some accounts may not list them.
  const uploadsEnded = await store.abortStaleUploads(keys.prefix, options.nowMs - staleUploadMs).catch(() => undefined);
  options.signal?.throwIfAborted();
  return { removed: plan.backups, kept: plan.kept, walRemoved, firstRequiredWal: wal.firstRequired, uploadsEnded };
}

/** Removes one backup. Its `backup.info` goes last: until then the backup is still listed, and its removal can be repeated. */
export async function removeBackup(
  store: ObjectStore,
  keys: ServerKeys,
  id: string,
  signal?: AbortSignal,
): Promise<void> {
  const folder = keys.backupFolder(id);
  const options = signal === undefined ? {} : { signal };
  const { objects } = await listAll(store, folder, options);
  const tars = objects.map(({ key }) => key).filter((key) => parseTarName(key.slice(folder.length)) !== undefined);
  await store.remove(tars, options);
  await store.remove([keys.backupInfo(id)], options);
}

async function removeWal(
  store: ObjectStore,
  keys: ServerKeys,
  isObsolete: (walName: string) => boolean,
  signal: AbortSignal | undefined,
): Promise<number> {
  const options = signal === undefined ? {} : { signal };
  let removed = 0;
  let batch: string[] = [];
  const flush = async () => {
    await store.remove(batch, options);
    removed += batch.length;
    batch = [];
  };
  for await (const { key, wal } of listWalObjects(store, keys, options)) {
    if (!isObsolete(wal.name)) continue;
    batch.push(key);
    if (batch.length >= deleteBatch) await flush();
  }
  if (batch.length > 0) await flush();
  return removed;
}
