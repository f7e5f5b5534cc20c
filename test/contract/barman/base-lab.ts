import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { restoreBaseBackup } from "../../../src/archive/base/restore-base-backup.ts";
import { takeBaseBackup } from "../../../src/archive/base/take-base-backup.ts";
import type { BaseBackupDeps, BaseBackupRequest, BaseBackupResult } from "../../../src/archive/base/types.ts";
import { serverKeys } from "../../../src/barman/object-keys.ts";
import type { ObjectStore } from "../../../src/ports/object-store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { createTreeFiles } from "../../../src/store/tree-files.ts";
import { type ArchivePlace, fetchArchivedWal, untilArchived, untilPromoted } from "../../support/archived-recovery.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { startRestored } from "../../support/restored-server.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { serverSessions } from "../../support/server-session.ts";
import { startWalSpool, type WalSpool } from "../../support/wal-spool.ts";

const run = promisify(execFile);
const tree = createTreeFiles();
export const { connectTo, runSql } = serverSessions("base-lab");

export interface BaseLabOptions {
  bucket: string;
  /** Megabytes of a WAL segment. @default 16 */
  segmentMb?: number;
  /** Names of tablespaces to make, in the order of their OIDs. */
  tablespaces?: readonly string[];
}

/** A primary whose WAL is archived into a real S3 server by our engine, and what backs it up and restores it. */
export class BaseLab {
  static readonly place = { path: "deep/path", serverName: "cluster-a" };
  readonly keys = serverKeys(BaseLab.place.path, BaseLab.place.serverName);
  readonly destination: readonly string[];
  readonly s3: S3Server;
  readonly store: ObjectStore;
  readonly folder: string;
  readonly primary: PostgresServer;
  /** Where each tablespace of the primary is. */
  readonly spaces: ReadonlyMap<string, string>;
  readonly #spool: WalSpool;

  static async start(options: BaseLabOptions): Promise<BaseLab> {
    const s3 = await startS3Server();
    const store = await createS3Store(s3.options(options.bucket));
    await store.checkBucket({ create: true });
    const folder = await mkdtemp(join(tmpdir(), "base-lab-"));
    await chmod(folder, 0o755);
    const spools: WalSpool[] = [];
    const primary = await startPostgres({
      initdbFlags: ["--data-checksums", `--wal-segsize=${options.segmentMb ?? 16}`],
      settings: { archive_mode: "on", max_wal_senders: "4", autovacuum: "off", min_wal_size: "128MB" },
      async prepare(dataDir, user) {
        const spool = await startWalSpool({ store, ...BaseLab.place, folder: join(folder, "wal"), owner: user });
        spools.push(spool);
        await writeFile(join(dataDir, "postgresql.auto.conf"), `${spool.archiveSetting}\n`);
      },
    });
    const [spool] = spools;
    if (!spool) throw new Error("the server was not prepared");
    const spaces = new Map<string, string>();
    for (const name of options.tablespaces ?? []) {
      const location = join(folder, name);
      await mkdir(location);
      await chown(location, primary.user.uid, primary.user.gid);
      await runSql(primary, `CREATE TABLESPACE ${name} LOCATION '${location}'`);
      spaces.set(name, location);
    }
    return new BaseLab({ s3, store, folder, primary, spool, spaces, bucket: options.bucket });
  }

  private constructor(parts: {
    s3: S3Server;
    store: ObjectStore;
    folder: string;
    primary: PostgresServer;
    spool: WalSpool;
    spaces: ReadonlyMap<string, string>;
    bucket: string;
  }) {
    this.s3 = parts.s3;
    this.store = parts.store;
    this.folder = parts.folder;
    this.primary = parts.primary;
    this.spaces = parts.spaces;
    this.#spool = parts.spool;
    this.destination = [`s3://${parts.bucket}/${BaseLab.place.path}`, BaseLab.place.serverName];
  }

  async stop(): Promise<void> {
    await this.primary.stop();
    await this.#spool.stop();
    this.store.close();
    await this.s3.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  backup(request: Partial<BaseBackupRequest> = {}, deps: Partial<BaseBackupDeps> = {}): Promise<BaseBackupResult> {
    const { logger } = captureLogs();
    return takeBaseBackup(
      { store: this.store, tree, clock: systemClock, logger, connect: connectTo(this.primary), ...deps },
      {
        ...BaseLab.place,
        backupName: `backup-${randomUUID()}`,
        immediateCheckpoint: true,
        walTimeoutMs: 120_000,
        ...request,
      },
    );
  }

  /** Folders for the tablespaces of a copy. */
  moved(name: string): Record<string, string> {
    return Object.fromEntries([...this.spaces.keys()].map((space) => [space, join(this.folder, name, space)]));
  }

  async restore(backupId: string, dataFolder: string, tablespaces: Record<string, string>): Promise<void> {
    const { logger } = captureLogs();
    const request = { ...BaseLab.place, backupId, dataFolder, tablespaces, sync: false };
    await restoreBaseBackup({ store: this.store, tree, clock: systemClock, logger }, request);
  }

  /** Starts a server on a copy that `restore` puts into a folder, with all WAL from a segment on, and waits until it is promoted. */
  async recovered(options: {
    name: string;
    firstWal: string;
    restore(dataFolder: string, tablespaces: Record<string, string>): Promise<void>;
    fetch?(walName: string, destination: string): Promise<void>;
  }): Promise<PostgresServer> {
    const tablespaces = this.moved(options.name);
    await mkdir(join(this.folder, options.name), { mode: 0o755 });
    const { firstWal: first, fetch } = options;
    const recovery = await fetchArchivedWal(this.#archive, { folder: this.folder, first, fetch });
    const server = await startRestored({
      restore: (dataFolder) => options.restore(dataFolder, tablespaces),
      recovery: { ...recovery, min_wal_size: "128MB" },
      ownedFolders: Object.values(tablespaces),
    });
    await untilPromoted(server, runSql);
    return server;
  }

  /** What `pg_amcheck` finds amiss: nothing, if all is well. */
  async amcheck(server: PostgresServer): Promise<string> {
    const where = ["-h", server.socketDir, "-p", String(server.port), "-U", "postgres"];
    const { stdout } = await run(join(server.binDir, "pg_amcheck"), [...where, "--heapallindexed", "postgres"]);
    return stdout;
  }

  /** Closes the primary's segment and waits until the archive holds it. */
  async switchWal(): Promise<void> {
    const [last] = await runSql(this.primary, "SELECT pg_walfile_name(pg_current_wal_lsn()) AS name, pg_switch_wal()");
    await untilArchived(this.#archive, String(last?.["name"]));
  }

  get #archive(): ArchivePlace {
    return { store: this.store, ...BaseLab.place };
  }
}
