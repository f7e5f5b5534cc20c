import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { takeBaseBackup } from "../../../src/archive/base/take-base-backup.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { createTreeFiles } from "../../../src/store/tree-files.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { startWalSpool, type WalSpool } from "../../support/wal-spool.ts";

/** A server somewhere else that archives to a real S3 server; archive `origin` in folder `a` of bucket `backups`. */
export interface ArchivedSource {
  readonly s3: S3Server;
  readonly server: PostgresServer;
  sql(...texts: string[]): Promise<Record<string, unknown>[]>;
  /** Takes a base backup and gives its ID. */
  backup(): Promise<string>;
  /** Closes the segment and waits until the archive holds everything. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

const connector = createSqlConnector();

export async function startArchivedSource(): Promise<ArchivedSource> {
  const s3 = await startS3Server();
  const place = { path: "a", serverName: "origin" };
  const store = await createS3Store(s3.options("backups"));
  await store.checkBucket({ create: true });
  const folder = mkdtempSync(join(tmpdir(), "origin-"));
  chmodSync(folder, 0o755);
  let spool: WalSpool | undefined;
  const server = await startPostgres({
    settings: { wal_level: "logical", archive_mode: "on", max_wal_senders: "5", track_commit_timestamp: "on" },
    async prepare(dataDir, user) {
      spool = await startWalSpool({ store, ...place, folder: join(folder, "wal"), owner: user });
      await writeFile(join(dataDir, "postgresql.auto.conf"), `${spool.archiveSetting}\n`);
    },
  });
  const connect = (signal?: AbortSignal) =>
    connector.connect(
      { host: server.socketDir, port: server.port, user: "postgres", database: "postgres", applicationName: "test" },
      signal,
    );
  async function sql(...texts: string[]): Promise<Record<string, unknown>[]> {
    const session = await connect();
    try {
      let rows: Record<string, unknown>[] = [];
      for (const text of texts) rows = await session.query(text);
      return rows;
    } finally {
      await session.close();
    }
  }
  return {
    s3,
    server,
    sql,
    async backup() {
      const deps = { store, tree: createTreeFiles(), clock: systemClock, logger: captureLogs().logger, connect };
      const request = { ...place, backupName: `backup-${Date.now()}`, immediateCheckpoint: true, walTimeoutMs: 60_000 };
      return (await takeBaseBackup(deps, request)).backupId;
    },
    async flush() {
      const [row] = await sql("SELECT pg_walfile_name(pg_switch_wal()) AS name");
      const last = String(row?.["name"]);
      for (let attempt = 0; attempt < 600; attempt += 1) {
        for await (const page of store.list(`a/origin/wals/${last.slice(0, 16)}/${last}`)) {
          if (page.objects.length > 0) return;
        }
        await sleep(100);
      }
      throw new Error(`${last} did not reach the archive`);
    },
    async stop() {
      await server.stop();
      await spool?.stop();
      store.close();
      await s3.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
