import { createHash } from "node:crypto";
import type { CompressionName } from "../barman/compression.ts";
import { type ServerKeys, serverKeys } from "../barman/object-keys.ts";

export interface ArchiveOptions {
  /** Path inside the bucket. */
  path: string;
  serverName: string;
  /** Destination and endpoint as the user gave them: with the server name they tell one archive from another. */
  destination: string;
  /** `pg_wal`, absolute. */
  walFolder: string;
  /** Folder of the durable records; outside PGDATA, used by this archiver only. */
  recordFolder: string;
  compression?: CompressionName | undefined;
  /** @default the cheapest that stores about what Barman's default level does */
  level?: number | undefined;
  /** Uploads at once. @default 1 */
  maxParallel?: number | undefined;
  /** Segments uploaded before PostgreSQL asks for them. @default twice the uploads at once, at least 4 */
  lookAhead?: number | undefined;
  /** Cores for compression. @default 2 */
  cores?: number | undefined;
  tags?: Readonly<Record<string, string>> | undefined;
  /** @default the tags */
  historyTags?: Readonly<Record<string, string>> | undefined;
  /** System identifier for files that do not hold it. */
  systemId?: string | undefined;
  /** Options as Barman's tool would be given them, for the log. */
  logOptions?: readonly string[] | undefined;
}

export interface ArchiveSettings {
  keys: ServerKeys;
  serverName: string;
  target: string;
  walFolder: string;
  recordFolder: string;
  compression: CompressionName | undefined;
  level: number | undefined;
  lanes: number;
  lookAhead: number;
  cores: number;
  tags: Readonly<Record<string, string>>;
  historyTags: Readonly<Record<string, string>>;
  systemId: string | undefined;
  logOptions: readonly string[];
}

/** Fills in the defaults. */
export function compileArchiveOptions(options: ArchiveOptions): ArchiveSettings {
  const lanes = Math.max(1, options.maxParallel ?? 1);
  const tags = options.tags ?? {};
  const history = options.historyTags ?? {};
  return {
    keys: serverKeys(options.path, options.serverName),
    serverName: options.serverName,
    target: archiveTarget(options.destination, options.path, options.serverName),
    walFolder: options.walFolder,
    recordFolder: options.recordFolder,
    compression: options.compression,
    level: options.level,
    lanes,
    lookAhead: options.lookAhead ?? Math.max(4, 2 * lanes),
    cores: Math.max(1, options.cores ?? 2),
    tags,
    historyTags: Object.keys(history).length === 0 ? tags : history,
    systemId: options.systemId,
    logOptions: options.logOptions ?? [],
  };
}

/** Which archive a record speaks of. */
export function archiveTarget(destination: string, path: string, serverName: string): string {
  return createHash("sha256")
    .update(JSON.stringify([destination, path, serverName]))
    .digest("hex")
    .slice(0, 32);
}
