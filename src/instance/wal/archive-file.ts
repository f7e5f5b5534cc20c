// One WAL file on its way to whoever archives it: the plugin that is the archiver, else the Cluster's own object store.
import type { Cluster } from "../../api/generated/cluster.ts";
import { annotations } from "../../api/labels.ts";
import type { WalArchiverChoice } from "../../plan/instance/wal.ts";
import { checkReplicaArchive, ownArchive } from "../../plan/instance/wal-sources.ts";
import type { Files } from "../../ports/files.ts";
import type { Plugin } from "../../ports/plugin.ts";
import type { PodPlugins } from "../plugins/pod-plugins.ts";
import type { InTreeWal } from "./wal-sources.ts";

export interface ArchiveFileDeps {
  plugins: PodPlugins;
  files: Files;
  /** Loads the engines of the in-tree archives. */
  inTree: () => Promise<InTreeWal>;
  /** File that asks for an empty archive before the first file goes there. */
  markerPath: string;
}

export interface ArchiveFileRequest {
  cluster: Cluster;
  by: Exclude<WalArchiverChoice, { kind: "none" }>;
  /** Absolute path. */
  path: string;
  /** Whether this pod is the current primary, so that files may be archived before PostgreSQL asks for them. */
  lookAhead: boolean;
}

const archives = (plugin: Plugin) => plugin.capabilities.wal.includes("TYPE_ARCHIVE_WAL");

function unavailable(name: string, cause?: unknown): Error {
  // The text is one that others look for; why it cannot be reached is the cause.
  return new Error(`wal archive plugin is not available: ${name}`, { cause });
}

/** Archives one file; `nobody`: none of the plugins that might have wanted it archives WAL. Fails with what the condition shows. */
export async function archiveFile(deps: ArchiveFileDeps, request: ArchiveFileRequest): Promise<"archived" | "nobody"> {
  const { cluster, by, path, lookAhead } = request;
  const marked = await deps.files.exists(deps.markerPath);
  const checkEmpty = marked && cluster.metadata.annotations?.[annotations.skipEmptyWalArchiveCheck] !== "enabled";
  if (by.kind === "objectStore") {
    const archive = ownArchive(cluster);
    if (!archive) throw new Error("spec.backup.barmanObjectStore is not set any more");
    const mixed = checkReplicaArchive(cluster);
    if (mixed) throw new Error(mixed);
    const engine = await deps.inTree();
    await engine.archive(archive, { path, checkEmpty, lookAhead, ...(marked ? { markerPath: deps.markerPath } : {}) });
    return "archived";
  }
  const wanted = by.kind === "plugin" ? [by.plugin] : by.plugins;
  const present = await deps.plugins.names();
  const missing = wanted.find((name) => !present.includes(name));
  if (missing !== undefined) throw unavailable(missing);
  return withPlugins(deps.plugins, wanted, async (plugins) => {
    const archivers = plugins.filter(archives);
    if (by.kind === "plugin" && archivers.length === 0) {
      throw new Error(`plugin ${by.plugin} is marked isWALArchiver but does not archive WAL; mark one that does`);
    }
    for (const plugin of archivers) {
      const call = { cluster: withType(cluster), sourceFileName: path, checkEmptyWalArchive: checkEmpty };
      // The reference sets no limit: a large segment over a slow line may take what it takes, and PostgreSQL waits.
      await plugin.wal.archive(call, { deadlineMs: null });
    }
    return archivers.length > 0 ? "archived" : "nobody";
  });
}

async function withPlugins<T>(
  pool: PodPlugins,
  names: readonly string[],
  work: (plugins: readonly Plugin[]) => Promise<T>,
): Promise<T> {
  let loaded = false;
  try {
    return await pool.use(names, (session) => {
      loaded = true;
      return work(session.plugins);
    });
  } catch (error) {
    throw loaded ? error : unavailable(names.join(", "), error);
  }
}

/** Plugins read the kind from the object; a live read may lack it. */
export function withType(cluster: Cluster): Cluster {
  return { ...cluster, apiVersion: "postgresql.cnpg.io/v1", kind: "Cluster" };
}
