import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ArchiveOptions } from "../../src/archive/archive-settings.ts";
import type { ArchiveFailpoint } from "../../src/archive/failpoint.ts";
import type { RestoreOptions } from "../../src/archive/restore-settings.ts";
import { WalArchiver } from "../../src/archive/wal-archiver.ts";
import { WalRestorer } from "../../src/archive/wal-restorer.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { ObjectStore } from "../../src/ports/object-store.ts";
import { createFiles } from "../../src/process/files.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { createBulkFiles } from "../../src/store/bulk-files.ts";
import { createFolderStore } from "../../src/store/folder-store.ts";
import { captureLogs, type LogCapture } from "./log-capture.ts";
import { makeSegment, testSystemId } from "./wal-segment.ts";
import { type WatchedStore, watchStore } from "./watched-store.ts";

/** A `pg_wal` and an archive in temporary folders, with the engines to move WAL between them. */
export interface WalFolder {
  readonly root: string;
  readonly wal: string;
  readonly archive: string;
  readonly store: WatchedStore;
  readonly logs: LogCapture;
  path(name: string): string;
  /** Writes segments that wait to be archived. */
  ready(...names: string[]): Promise<void>;
  /** What PostgreSQL does once a segment is archived. */
  done(name: string): Promise<void>;
  archiver(options?: Partial<ArchiveOptions>, failpoint?: ArchiveFailpoint): WalArchiver;
  restorer(options?: Partial<RestoreOptions>, extra?: { clock?: Clock; failpoint?: ArchiveFailpoint }): WalRestorer;
  /** Names of the objects below `wals/`, sorted. */
  archived(): Promise<string[]>;
  /** Names of the durable records. */
  records(): Promise<string[]>;
  remove(): Promise<void>;
}

/** Makes the folders. */
export async function createWalFolder(makeStore?: (archive: string) => ObjectStore): Promise<WalFolder> {
  const root = await mkdtemp(join(tmpdir(), "wal-"));
  const wal = join(root, "pg_wal");
  const archive = join(root, "archive");
  await mkdir(join(wal, "archive_status"), { recursive: true });
  await mkdir(archive);
  const store = watchStore(makeStore ? makeStore(archive) : createFolderStore({ folder: archive }));
  const logs = captureLogs();
  const ports = {
    store,
    files: createFiles(),
    bulk: createBulkFiles(),
    clock: systemClock,
    random: systemRandom,
    logger: logs.logger,
  };
  const path = (name: string) => join(wal, name);
  return {
    root,
    wal,
    archive,
    store,
    logs,
    path,
    async ready(...names) {
      for (const name of names) {
        await writeFile(path(name), makeSegment(name, { segmentBytes: 1 << 20 }));
        await writeFile(join(wal, "archive_status", `${name}.ready`), "");
      }
    },
    done: (name) => rename(join(wal, "archive_status", `${name}.ready`), join(wal, "archive_status", `${name}.done`)),
    archiver: (options, failpoint) =>
      new WalArchiver(
        {
          path: "p",
          serverName: "srv",
          destination: `file://${archive}`,
          walFolder: wal,
          recordFolder: join(root, "records"),
          compression: "zstd",
          systemId: testSystemId,
          ...options,
        },
        { ...ports, ...(failpoint ? { failpoint } : {}) },
      ),
    restorer: (options, extra) =>
      new WalRestorer(
        { path: "p", serverName: "srv", spoolFolder: join(root, "spool"), ...options },
        { ...ports, ...extra },
      ),
    async archived() {
      const names = await readdir(archive, { recursive: true });
      return names
        .flatMap((name) =>
          name.includes(".") || /[0-9A-F]{24}$/.test(name) ? [name.slice(name.lastIndexOf("/") + 1)] : [],
        )
        .sort();
    },
    async records() {
      const names = await readdir(join(root, "records")).catch(() => []);
      return names.flatMap((name) => (name.endsWith(".archived") ? [name.slice(0, -".archived".length)] : [])).sort();
    },
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

/** Names of segments of timeline 1, for 1 MiB segments. */
export function segments(from: number, to: number, timeline = 1): string[] {
  return Array.from({ length: to - from + 1 }, (_, at) => {
    const hex = (value: number) => value.toString(16).toUpperCase().padStart(8, "0");
    return `${hex(timeline)}00000000${hex(from + at)}`;
  });
}
