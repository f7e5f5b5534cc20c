import { decideEmptyArchive } from "../barman/archive-request.ts";
import type { ServerKeys } from "../barman/object-keys.ts";
import { parseArchivedWal } from "../barman/wal-names.ts";
import type { BulkFiles } from "../ports/bulk-files.ts";
import type { Files } from "../ports/files.ts";
import type { ObjectStore } from "../ports/object-store.ts";
import { hashFile, hashObject } from "./object-hash.ts";
import { WalError } from "./wal-error.ts";

/** A listing is read no further than this: by then the answer is known. */
const enoughNames = 1000;

export interface EmptyCheckDeps {
  store: ObjectStore;
  files: Files;
  bulk: BulkFiles;
  signal?: AbortSignal;
}

/**
 * Fails with `conflict` unless the server's archive holds no WAL, or only such as this cluster itself has just sent: then each
 * object equals the file that still lies in `pg_wal`. A missing bucket is made, as Barman's check does.
 */
export async function checkEmptyArchive(
  keys: ServerKeys,
  serverName: string,
  walFolder: string | undefined,
  deps: EmptyCheckDeps,
): Promise<void> {
  const { store, signal } = deps;
  const attempt = `WAL archive check failed for server ${serverName}`;
  try {
    await store.checkBucket({ create: true, ...(signal === undefined ? {} : { signal }) });
    const byName = await listWal(store, keys, signal);
    const local = new Set(walFolder === undefined ? [] : await deps.files.list(walFolder));
    const decision = decideEmptyArchive([...byName.keys()], local);
    if (decision.kind === "empty") return;
    if (decision.kind === "filled") throw notEmpty(attempt, store, byName.get(decision.objectName));
    for (const objectName of decision.objectNames) {
      const key = byName.get(objectName) ?? "";
      const path = `${walFolder}/${parseArchivedWal(objectName)?.name ?? ""}`;
      const [stored, own] = await Promise.all([hashObject(store, key, signal), hashFile(deps.bulk, path)]);
      if (stored !== own) throw notEmpty(attempt, store, key);
    }
  } catch (error) {
    throw WalError.from(attempt, error);
  }
}

async function listWal(store: ObjectStore, keys: ServerKeys, signal: AbortSignal | undefined) {
  const byName = new Map<string, string>();
  for await (const page of store.list(keys.walsPrefix, signal === undefined ? {} : { signal })) {
    for (const { key } of page.objects) {
      const objectName = key.slice(key.lastIndexOf("/") + 1);
      if (parseArchivedWal(objectName)) byName.set(objectName, key);
    }
    if (byName.size >= enoughNames) break;
  }
  return byName;
}

function notEmpty(attempt: string, store: ObjectStore, key: string | undefined): WalError {
  return new WalError("conflict", `${attempt}: Expected empty archive, found ${store.location}/${key ?? ""}`);
}
