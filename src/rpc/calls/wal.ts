import {
  findPluginError,
  type Plugin,
  type PluginCallOptions,
  type PluginError,
  type WalArchiveRequest,
  type WalRestoreRequest,
} from "../../ports/plugin.ts";
import { encodeCluster } from "../wire/document.ts";

/** Hands the file to every plugin that archives; answers with their names. The first failure ends it, and PostgreSQL asks again. */
export async function archiveWal(
  plugins: readonly Plugin[],
  request: WalArchiveRequest,
  options?: PluginCallOptions,
): Promise<readonly string[]> {
  const archivers = plugins.filter(({ capabilities }) => capabilities.wal.includes("TYPE_ARCHIVE_WAL"));
  if (archivers.length === 0) return [];
  const cluster = encodeCluster(request.cluster);
  for (const plugin of archivers) await plugin.wal.archive({ ...request, cluster }, options);
  return archivers.map(({ name }) => name);
}

/** How the plugins answered. Only `notFound` is knowledge about the archive: every plugin that was asked said so. */
export type WalRestoreOutcome =
  | { kind: "restored"; plugin: string }
  | { kind: "noPlugin" }
  | { kind: "notFound"; errors: readonly PluginError[] }
  | { kind: "failed"; errors: readonly PluginError[] };

/** Asks the plugins that restore, in order, until one has the file. */
export async function restoreWal(
  plugins: readonly Plugin[],
  request: WalRestoreRequest,
  options?: PluginCallOptions,
): Promise<WalRestoreOutcome> {
  const restorers = plugins.filter(({ capabilities }) => capabilities.wal.includes("TYPE_RESTORE_WAL"));
  if (restorers.length === 0) return { kind: "noPlugin" };
  const cluster = encodeCluster(request.cluster);
  const errors: PluginError[] = [];
  for (const plugin of restorers) {
    try {
      await plugin.wal.restore({ ...request, cluster }, options);
      return { kind: "restored", plugin: plugin.name };
    } catch (error) {
      const known = findPluginError(error);
      if (!known) throw error;
      errors.push(known);
    }
  }
  return { kind: errors.every(({ kind }) => kind === "notFound") ? "notFound" : "failed", errors };
}
