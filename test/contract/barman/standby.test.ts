// A standby that is backed up, promoted, and followed by the drain of the primary it replaced: real servers, one archive.
import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { readCatalog } from "../../../src/archive/archive-reader.ts";
import type { BaseStep } from "../../../src/archive/base/failpoint.ts";
import { restoreBaseBackup } from "../../../src/archive/base/restore-base-backup.ts";
import { switchWal } from "../../../src/archive/base/switch-wal.ts";
import { takeBaseBackup } from "../../../src/archive/base/take-base-backup.ts";
import type { BaseBackupDeps, BaseBackupRequest } from "../../../src/archive/base/types.ts";
import { WalArchiver } from "../../../src/archive/wal-archiver.ts";
import { serverKeys } from "../../../src/barman/object-keys.ts";
import { planDrain } from "../../../src/plan/instance/drain.ts";
import { listAll, type ObjectStore } from "../../../src/ports/object-store.ts";
import { parseLsn } from "../../../src/postgres/lsn.ts";
import { parseTimelineHistory } from "../../../src/postgres/timeline-history.ts";
import { createFiles } from "../../../src/process/files.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { createBulkFiles } from "../../../src/store/bulk-files.ts";
import { createFolderStore } from "../../../src/store/folder-store.ts";
import { createTreeFiles } from "../../../src/store/tree-files.ts";
import { fetchArchivedWal, untilPromoted } from "../../support/archived-recovery.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { startRestored } from "../../support/restored-server.ts";
import { serverSessions } from "../../support/server-session.ts";
import { startWalSpool, type WalSpool } from "../../support/wal-spool.ts";

// Four servers one after another, on a machine that may be busy.
vi.setConfig({ testTimeout: 240_000 });

const segmentBytes = 1024 * 1024;
const place = { path: "p", serverName: "cluster-a" };
const keys = serverKeys(place.path, place.serverName);
const tree = createTreeFiles();
const { connectTo, runSql } = serverSessions("standby");
const { logger } = captureLogs();

let store: ObjectStore;
let folder: string;
let primary: PostgresServer;
let standby: PostgresServer;
const spools: WalSpool[] = [];
/** Of the backup from the standby. */
let backupId: string;

/** Makes a server archive into the one archive. */
async function archiveSetting(name: string, owner: PostgresServer["user"]): Promise<string> {
  const spool = await startWalSpool({ store, ...place, folder: join(folder, name), owner });
  spools.push(spool);
  return spool.archiveSetting;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "standby-"));
  await chmod(folder, 0o755);
  store = createFolderStore({ folder: join(folder, "store") });
  await store.checkBucket({ create: true });
  primary = await startPostgres({
    initdbFlags: ["--wal-segsize=1"],
    settings: {
      archive_mode: "on",
      max_wal_senders: "4",
      autovacuum: "off",
      min_wal_size: "8MB",
      wal_keep_size: "64MB",
    },
    async prepare(dataDir, user) {
      await writeFile(join(dataDir, "postgresql.auto.conf"), `${await archiveSetting("primary", user)}\n`);
    },
  });
  await runSql(primary, "CREATE TABLE public.n AS SELECT 1 AS id", "CREATE ROLE streaming LOGIN REPLICATION");
  const setting = await archiveSetting("standby", primary.user);
  standby = await startPostgres({
    standbyOf: primary,
    settings: { hot_standby: "on", min_wal_size: "8MB" },
    async prepare(dataDir) {
      const text = await readFile(join(dataDir, "postgresql.auto.conf"), "utf8");
      await writeFile(join(dataDir, "postgresql.auto.conf"), text.replace(/^archive_command = .*$/m, setting));
    },
  });
});

afterAll(async () => {
  await standby?.stop();
  await primary?.stop();
  for (const spool of spools) await spool.stop();
  store?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

function take(deps: Partial<BaseBackupDeps> = {}, request: Partial<BaseBackupRequest> = {}) {
  return takeBaseBackup(
    { store, tree, clock: systemClock, logger, connect: connectTo(standby), ...deps },
    {
      ...place,
      backupName: `backup-${randomUUID()}`,
      immediateCheckpoint: true,
      compression: "lz4",
      walTimeoutMs: 120_000,
      ...request,
    },
  );
}

async function until(what: string, is: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 1200; attempt++) {
    if (await is()) return;
    await systemClock.sleep(100);
  }
  throw new Error(`${what} does not come true`);
}

/** Waits until the standby has replayed what the primary has written. */
async function followed(): Promise<void> {
  const [row] = await runSql(primary, "SELECT pg_current_wal_flush_lsn()::text AS lsn");
  const there = `SELECT pg_last_wal_replay_lsn() >= '${row?.["lsn"]}' AS there`;
  await until("replay", async () => (await runSql(standby, there))[0]?.["there"] === true);
}

/** Numbers that a server shows which recovers from the backup and from what the archive holds now. */
async function recoveredNumbers(): Promise<string> {
  const recovery = await fetchArchivedWal({ store, ...place }, { folder });
  const server = await startRestored({
    restore: async (dataFolder) => {
      await restoreBaseBackup(
        { store, tree, clock: systemClock, logger },
        { ...place, backupId, dataFolder, sync: false },
      );
    },
    recovery: { ...recovery, min_wal_size: "8MB" },
  });
  try {
    await untilPromoted(server, runSql);
    const [row] = await runSql(server, "SELECT string_agg(id::text, ',' ORDER BY id) AS ids FROM n");
    return String(row?.["ids"]);
  } finally {
    await server.stop();
  }
}

test("a backup of an idle cluster's standby, restored at once, comes up", async () => {
  // What the standby has replayed and written to its files lies in a segment that nothing will close by itself.
  await runSql(primary, "INSERT INTO n VALUES (2)", "CHECKPOINT");
  await followed();
  await runSql(standby, "CHECKPOINT");
  const taken = await take({
    async switchPrimaryWal(signal) {
      const session = await connectTo(primary, "streaming")(signal);
      try {
        await switchWal(session);
      } finally {
        await session.close();
      }
    },
  });
  expect(taken.fromStandby).toBe(true);
  backupId = taken.backupId;
  expect(await recoveredNumbers()).toBe("1,2");
});

test("a primary's segments that it did not archive before its end are archived by its drain, and no others", async () => {
  await runSql(primary, "ALTER SYSTEM SET archive_command = 'false'", "SELECT pg_reload_conf()");
  const fill = "SELECT pg_logical_emit_message(false, 'fill', repeat('x', 1500000)) IS NOT NULL";
  await runSql(primary, "INSERT INTO n VALUES (3)", fill, "INSERT INTO n VALUES (4)", fill, "INSERT INTO n VALUES (5)");
  await followed();

  // The backup that runs on the standby meanwhile is void: nobody knows what its begin protected.
  const backupName = `backup-${randomUUID()}`;
  const failpoint = async (step: BaseStep) => {
    if (step === "dataCopied") await runSql(standby, "SELECT pg_promote(true, 120)");
  };
  await expect(take({ failpoint }, { backupName })).rejects.toMatchObject({
    kind: "postgres",
    message: expect.stringMatching(/promoted/),
  });
  const { backups } = await readCatalog(store, keys);
  expect(backups.find(({ info }) => info.backupName === backupName)?.info).toMatchObject({
    status: "FAILED",
    endTime: null,
    error: expect.stringMatching(/^failure uploading data \(.*promoted/),
  });

  // Both go on for a while; what the old primary writes now is nobody's.
  await runSql(primary, "INSERT INTO n VALUES (666)", fill, "SELECT pg_switch_wal()");
  await runSql(standby, "INSERT INTO n VALUES (6)", "SELECT pg_switch_wal()");
  const history = "00000002.history";
  const [last] = await runSql(standby, "SELECT pg_walfile_name(pg_switch_wal()) AS name");
  const isThere = async (name: string) => (await listAll(store, keys.wal(name))).objects.length > 0;
  await until("the new timeline's archive", async () => (await isThere(history)) && isThere(String(last?.["name"])));

  const status = join(primary.dataDir, "pg_wal/archive_status");
  const ready = (await readdir(status)).filter((name) => name.endsWith(".ready")).map((name) => name.slice(0, -6));
  const parsed = parseTimelineHistory(await readFile(join(standby.dataDir, "pg_wal", history), "utf8"));
  const [control] = await runSql(
    standby,
    "CHECKPOINT",
    "SELECT checkpoint_lsn::text AS lsn FROM pg_control_checkpoint()",
  );
  const position = parseLsn(String(control?.["lsn"]));
  if (!parsed || position === undefined) throw new Error("the standby tells neither history nor checkpoint");
  const { archive, divergent } = planDrain(ready, { timeline: 2, position, history: parsed, segmentBytes });
  expect(archive.length).toBeGreaterThan(1);
  expect(divergent.length).toBeGreaterThan(1);

  const options = { ...place, destination: "drain", walFolder: join(primary.dataDir, "pg_wal") };
  const archiver = new WalArchiver(
    { ...options, recordFolder: join(folder, "drain"), compression: "gzip" },
    { store, files: createFiles(), bulk: createBulkFiles(), clock: systemClock, logger },
  );
  const limit = { history: parsed, segmentBytes };
  for (const name of archive) {
    expect(await isThere(name)).toBe(false);
    await archiver.archive({ path: join(options.walFolder, name), drain: limit });
  }
  // Even one that the plan let through would be refused by the archiver.
  for (const { name } of divergent) {
    const refused = archiver.archive({ path: join(options.walFolder, name), drain: limit });
    await expect(refused).rejects.toMatchObject({ kind: "conflict" });
  }
  await archiver.close();
  expect(await recoveredNumbers()).toBe("1,2,3,4,5,6");
});
