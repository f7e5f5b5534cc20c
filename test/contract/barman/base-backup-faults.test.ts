import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, rm, truncate, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readCatalog, readText } from "../../../src/archive/archive-reader.ts";
import type { BaseStep } from "../../../src/archive/base/failpoint.ts";
import { checkWalOfBackup, findBaseBackup } from "../../../src/archive/base/find-base-backup.ts";
import { restoreBaseBackup } from "../../../src/archive/base/restore-base-backup.ts";
import { switchWal } from "../../../src/archive/base/switch-wal.ts";
import { takeBaseBackup } from "../../../src/archive/base/take-base-backup.ts";
import type { BaseBackupDeps, BaseBackupRequest, BaseRestoreDeps } from "../../../src/archive/base/types.ts";
import { serverKeys } from "../../../src/barman/object-keys.ts";
import type { ObjectStore } from "../../../src/ports/object-store.ts";
import type { TreeFiles } from "../../../src/ports/tree-files.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { createFolderStore } from "../../../src/store/folder-store.ts";
import { createTreeFiles } from "../../../src/store/tree-files.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { serverSessions } from "../../support/server-session.ts";
import { startWalSpool, type WalSpool } from "../../support/wal-spool.ts";

const place = { path: "p", serverName: "cluster-a" };
const keys = serverKeys(place.path, place.serverName);
const tree = createTreeFiles();
const { connectTo, runSql } = serverSessions("base-faults");
const { logger } = captureLogs();

let store: ObjectStore;
let folder: string;
let primary: PostgresServer;
let standby: PostgresServer;
let spool: WalSpool;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "base-faults-"));
  await chmod(folder, 0o755);
  store = createFolderStore({ folder: join(folder, "store") });
  await store.checkBucket({ create: true });
  primary = await startPostgres({
    settings: { archive_mode: "on", max_wal_senders: "4", autovacuum: "off" },
    async prepare(dataDir, user) {
      spool = await startWalSpool({ store, ...place, folder: join(folder, "wal"), owner: user });
      await writeFile(join(dataDir, "postgresql.auto.conf"), `${spool.archiveSetting}\n`);
    },
  });
  await runSql(primary, "CREATE TABLE public.t AS SELECT 1 AS id", "CREATE ROLE streaming LOGIN REPLICATION");
  standby = await startPostgres({ standbyOf: primary, settings: { archive_mode: "off", hot_standby: "on" } });
});

afterAll(async () => {
  await standby?.stop();
  await primary?.stop();
  await spool?.stop();
  store?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

function take(deps: Partial<BaseBackupDeps> = {}, request: Partial<BaseBackupRequest> = {}) {
  return takeBaseBackup(
    { store, tree, clock: systemClock, logger, connect: connectTo(primary), ...deps },
    {
      ...place,
      backupName: `backup-${randomUUID()}`,
      immediateCheckpoint: true,
      compression: "lz4",
      walTimeoutMs: 60_000,
      ...request,
    },
  );
}

function restore(backupId: string, name: string, deps: Partial<BaseRestoreDeps> = {}) {
  return restoreBaseBackup(
    { store, tree, clock: systemClock, logger, ...deps },
    { ...place, backupId, dataFolder: join(folder, name), sync: false },
  );
}

/** Leaves WAL in the primary's open segment that the standby has replayed and written to its files. */
async function writeAndFollow(): Promise<void> {
  await runSql(primary, "INSERT INTO public.t VALUES (2)", "CHECKPOINT");
  const [row] = await runSql(primary, "SELECT pg_current_wal_flush_lsn()::text AS lsn");
  for (let attempt = 0; attempt < 600; attempt++) {
    const [seen] = await runSql(standby, `SELECT pg_last_wal_replay_lsn() >= '${row?.["lsn"]}' AS there`);
    if (seen?.["there"] === true) break;
    await systemClock.sleep(50);
  }
  await runSql(standby, "CHECKPOINT");
}

async function named(name: string) {
  const catalog = await readCatalog(store, keys);
  return catalog.backups.filter((backup) => backup.info.backupName === name);
}

describe("a standby of an idle primary", () => {
  test("waits for the segment that only the primary can close, and has it closed by a role that may not switch", async () => {
    await writeAndFollow();
    let asked = 0;
    const taken = await take({
      connect: connectTo(standby),
      async switchPrimaryWal(signal) {
        asked += 1;
        const session = await connectTo(primary, "streaming")(signal);
        try {
          await switchWal(session);
        } finally {
          await session.close();
        }
      },
    });
    expect(taken.fromStandby).toBe(true);
    expect(asked).toBeGreaterThan(0);
    expect(taken.backupLabel).toContain("BACKUP FROM: standby");
    const backup = await findBaseBackup(store, place, taken.backupName);
    await expect(checkWalOfBackup(store, place, backup)).resolves.toBeUndefined();
  });

  test("is failed, not done, when that segment never comes", async () => {
    await writeAndFollow();
    const name = `backup-${randomUUID()}`;
    const taken = take({ connect: connectTo(standby) }, { backupName: name, walTimeoutMs: 1_500 });
    await expect(taken).rejects.toMatchObject({ kind: "walMissing", message: expect.stringContaining("archive") });
    const [failed] = await named(name);
    expect(failed?.info).toMatchObject({ status: "FAILED", endTime: null });
  });
});

describe("a backup that does not end well", () => {
  const steps: BaseStep[] = [
    "backupStarted",
    "startedInfoWritten",
    "dataCopied",
    "controlFileCopied",
    "backupStopped",
    "archivesClosed",
    "walArchived",
  ];

  test.each(steps)("is FAILED when it breaks after %s", async (step) => {
    const name = `backup-${randomUUID()}`;
    const failpoint = (at: BaseStep) => {
      if (at === step) throw new Error("broken here\nand more");
    };
    await expect(take({ failpoint }, { backupName: name })).rejects.toThrow("broken here");
    const [failed] = await named(name);
    expect(failed?.info).toMatchObject({ status: "FAILED", endTime: null });
    expect(failed?.info.error).toMatch(/^failure uploading (data|backup\.info file) \(broken here\)$/);
    await expect(findBaseBackup(store, place, name)).rejects.toMatchObject({ kind: "notFound" });
    expect(
      await runSql(primary, "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'base-faults'"),
    ).toEqual([{ n: 1 }]);
  });

  test("is FAILED when the session is lost during the copy", async () => {
    const name = `backup-${randomUUID()}`;
    const failpoint = async (at: BaseStep) => {
      if (at !== "dataCopied") return;
      await runSql(
        primary,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'base-faults' AND pid <> pg_backend_pid()",
      );
    };
    await expect(take({ failpoint }, { backupName: name })).rejects.toMatchObject({ kind: "postgres" });
    expect((await named(name))[0]?.info.status).toBe("FAILED");
  });

  test("is ended by its heartbeat when the session is lost while nobody asks", async () => {
    const name = `backup-${randomUUID()}`;
    const failpoint = async (at: BaseStep) => {
      if (at !== "startedInfoWritten") return;
      await runSql(
        primary,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'base-faults' AND pid <> pg_backend_pid()",
      );
    };
    // So slow that only the heartbeat can end it in time.
    const slow = { backupName: name, keepaliveMs: 50, maxBandwidthBytes: 20_000 };
    await expect(take({ failpoint }, slow)).rejects.toMatchObject({
      kind: "postgres",
      message: expect.stringContaining("session was lost"),
    });
    expect((await named(name))[0]?.info.status).toBe("FAILED");
  });

  test("is FAILED and ends soon when the caller cancels it", async () => {
    const name = `backup-${randomUUID()}`;
    const caller = new AbortController();
    const failpoint = (at: BaseStep) => {
      if (at === "startedInfoWritten") caller.abort(new Error("the Backup was deleted"));
    };
    await expect(take({ failpoint }, { backupName: name, signal: caller.signal })).rejects.toMatchObject({
      kind: "cancelled",
      message: expect.stringContaining("the Backup was deleted"),
    });
    const [failed] = await named(name);
    expect(failed?.info).toMatchObject({ status: "FAILED", error: "failure uploading data (the Backup was deleted)" });
  });

  test("leaves no backup.info when PostgreSQL cannot be reached", async () => {
    const name = `backup-${randomUUID()}`;
    const nobody = async () => {
      throw new Error("connection refused");
    };
    await expect(take({ connect: nobody }, { backupName: name })).rejects.toMatchObject({ kind: "postgres" });
    expect(await named(name)).toEqual([]);
  });
});

test("files that vanish, shrink and grow while they are copied are no failure, and large copies are split", async () => {
  const inside = join(primary.dataDir, "base/9999999");
  await mkdir(inside);
  for (const name of ["grows", "shrinks", "vanishes"]) await writeFile(join(inside, name), Buffer.alloc(300_000, 0x61));
  const disturbed: TreeFiles = {
    ...tree,
    async open(path) {
      if (path.endsWith("/vanishes")) await unlink(path);
      const source = await tree.open(path);
      if (path.endsWith("/shrinks")) await truncate(path, 1000);
      if (path.endsWith("/grows")) await writeFile(path, Buffer.alloc(900_000, 0x62));
      return source;
    },
  };
  const taken = await take({ tree: disturbed }, { maxArchiveBytes: 200_000 });
  await rm(inside, { recursive: true });
  const parts = (await readdir(join(folder, "store", keys.backupFolder(taken.backupId)))).sort();
  expect(parts).toContain("data_0001.tar.lz4");
  const target = join(folder, "disturbed");
  await restore(taken.backupId, "disturbed");
  const copied = join(target, "base/9999999");
  expect(await readdir(copied)).toEqual(["grows", "shrinks"]);
  expect((await tree.stat(join(copied, "grows")))?.size).toBe(300_000);
  expect((await tree.stat(join(copied, "shrinks")))?.size).toBe(300_000);

  // A part that is missing is seen before anything is written.
  await rm(join(folder, "store", keys.backupFolder(taken.backupId), "data_0001.tar.lz4"));
  await expect(restore(taken.backupId, "incomplete")).rejects.toMatchObject({ kind: "notFound" });
  expect(await tree.stat(join(folder, "incomplete"))).toBeUndefined();
});

describe("a restore that does not end well", () => {
  let backupId: string;

  beforeAll(async () => {
    backupId = (await take()).backupId;
  });

  test.each<BaseStep>(["dataRestored", "linksMade", "treeSynced"])(
    "leaves empty folders when it breaks after %s",
    async (step) => {
      const name = `broken-${step}`;
      const seen: boolean[] = [];
      const failpoint = async (at: BaseStep) => {
        if (at !== step) return;
        seen.push((await tree.stat(join(folder, name, "global/pg_control"))) !== undefined);
        throw new Error("broken here");
      };
      await expect(restore(backupId, name, { failpoint })).rejects.toThrow("broken here");
      // A killed restore would have left no control file either.
      expect(seen).toEqual([false]);
      expect(await readdir(join(folder, name))).toEqual([]);
      await expect(restore(backupId, name)).resolves.toMatchObject({ backupId });
    },
  );

  test("refuses a folder that holds something, and leaves it alone", async () => {
    await mkdir(join(folder, "full"));
    await writeFile(join(folder, "full/precious"), "x");
    await expect(restore(backupId, "full")).rejects.toMatchObject({ kind: "notEmpty" });
    expect(await readdir(join(folder, "full"))).toEqual(["precious"]);
  });

  test("says of a damaged archive that it is damaged, and of a store without answer that nothing is known", async () => {
    const key = keys.tar(backupId, "data", 0, "lz4");
    const path = join(folder, "store", key);
    const damaged = await findBaseBackup(store, place, backupId);
    expect(damaged.info.status).toBe("DONE");
    const { size = 0 } = (await tree.stat(path)) ?? {};
    await truncate(path, size - 100);
    await expect(restore(backupId, "damaged")).rejects.toMatchObject({ kind: "damaged" });
    expect(await readdir(join(folder, "damaged"))).toEqual([]);
    const away = createFolderStore({ folder: join(folder, "not-mounted") });
    await expect(restore(backupId, "away", { store: away })).rejects.toMatchObject({ kind: "unavailable" });
    expect(await readText(store, keys.backupInfo(backupId))).toContain("status=DONE");
  });
});
