import type { CatalogBackup } from "../../barman/catalog.ts";
import { type CompressionName, compressions, splitCompressionSuffix } from "../../barman/compression.ts";
import { parseTarName, type ServerKeys } from "../../barman/object-keys.ts";
import { listAll, type ObjectStore } from "../../ports/object-store.ts";
import { BaseError } from "./base-error.ts";

/** One archive of a backup. */
export interface BackupArchive {
  key: string;
  size: number;
  compression: CompressionName | undefined;
}

/** The archives of a backup by folder: `data` and each tablespace's OID, in the order they are extracted. */
export async function listArchives(
  store: ObjectStore,
  keys: ServerKeys,
  backup: CatalogBackup,
  signal: AbortSignal,
): Promise<Map<string, BackupArchive[]>> {
  const folder = keys.backupFolder(backup.id);
  const { objects } = await listAll(store, folder, { signal });
  const names = ["data", ...(backup.info.tablespaces ?? []).map(({ oid }) => String(oid))];
  const found = new Map<string, (BackupArchive & { part: number })[]>(names.map((name) => [name, []]));
  for (const { key, size } of objects) {
    const tar = parseTarName(key.slice(folder.length));
    const archive = tar && readSuffix(key, tar.suffix);
    if (tar && archive) found.get(tar.name)?.push({ key, size, compression: archive.compression, part: tar.part });
  }
  for (const [name, archives] of found) {
    archives.sort((a, b) => a.part - b.part);
    checkArchives(store, `${folder}${name}.tar`, archives);
  }
  return found;
}

function readSuffix(key: string, suffix: string): { compression: CompressionName | undefined } | undefined {
  if (suffix === "") return { compression: undefined };
  const { compression } = splitCompressionSuffix(key);
  return compression !== undefined && compressions[compression].suffix === suffix ? { compression } : undefined;
}

function checkArchives(store: ObjectStore, shown: string, archives: readonly { part: number }[]): void {
  const at = archives.findIndex(({ part }, index) => part !== index);
  if (archives.length === 0 || at >= 0) {
    const missing = at < 0 ? "" : ` (part ${at} is missing or there twice)`;
    throw new BaseError("notFound", `the archive ${store.location}/${shown} is not complete${missing}`);
  }
}
