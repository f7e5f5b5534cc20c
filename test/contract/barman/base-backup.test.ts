import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chooseBaseBackup } from "../../../src/archive/base/find-base-backup.ts";
import { restoreBaseBackup } from "../../../src/archive/base/restore-base-backup.ts";
import { takeBaseBackup } from "../../../src/archive/base/take-base-backup.ts";
import type { BaseBackupRequest } from "../../../src/archive/base/types.ts";
import { formatBackupInfo, parseBackupInfo } from "../../../src/barman/backup-info.ts";
import type { CompressionName } from "../../../src/barman/compression.ts";
import type { ObjectStore } from "../../../src/ports/object-store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { createTreeFiles } from "../../../src/store/tree-files.ts";
import { fetchArchivedWal, untilArchived, untilPromoted } from "../../support/archived-recovery.ts";
import { type BarmanTools, barmanTools } from "../../support/barman.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { startRestored } from "../../support/restored-server.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { serverSessions } from "../../support/server-session.ts";
import { startWalSpool, type WalSpool } from "../../support/wal-spool.ts";

const run = promisify(execFile);
const bucket = "barman-base";
const place = { path: "deep/path", serverName: "cluster-a" };
const destination = [`s3://${bucket}/deep/path`, "cluster-a"];
/** Those that Barman 3.19 knows for base backups. */
const shared: (CompressionName | undefined)[] = [undefined, "gzip", "bzip2", "snappy", "lz4"];
const tree = createTreeFiles();
const { connectTo, runSql } = serverSessions("base-test");

let s3: S3Server;
let barman: BarmanTools;
let store: ObjectStore;
let folder: string;
let primary: PostgresServer;
let spool: WalSpool;
let spaceFolder: string;

beforeAll(async () => {
  s3 = await startS3Server();
  barman = await barmanTools(s3);
  store = await createS3Store(s3.options(bucket));
  await store.checkBucket({ create: true });
  folder = await mkdtemp(join(tmpdir(), "barman-base-"));
  await chmod(folder, 0o755);
  primary = await startPostgres({
    initdbFlags: ["--data-checksums"],
    settings: { archive_mode: "on", wal_level: "replica", max_wal_senders: "4" },
    async prepare(dataDir, user) {
      spool = await startWalSpool({ store, ...place, folder: join(folder, "wal"), owner: user });
      await writeFile(join(dataDir, "postgresql.auto.conf"), `${spool.archiveSetting}\n`);
    },
  });
  spaceFolder = join(folder, "space");
  await mkdir(spaceFolder);
  await chown(spaceFolder, primary.user.uid, primary.user.gid);
  await runSql(
    primary,
    `CREATE TABLESPACE space LOCATION '${spaceFolder}'`,
    "CREATE TABLE public.t (id int PRIMARY KEY, pad text)",
    "INSERT INTO t SELECT i, repeat(md5(i::text), 10) FROM generate_series(1, 20000) i",
    "CREATE TABLE public.s TABLESPACE space AS SELECT * FROM t",
    "CREATE EXTENSION amcheck SCHEMA public",
    "CREATE ROLE streaming LOGIN REPLICATION",
  );
});

afterAll(async () => {
  await primary?.stop();
  await spool?.stop();
  store?.close();
  await s3?.stop();
  if (folder) await rm(folder, { recursive: true, force: true });
});

function backup(options: Partial<BaseBackupRequest> & { server?: PostgresServer } = {}) {
  const { server = primary, ...request } = options;
  return takeBaseBackup(
    { store, tree, clock: systemClock, logger: captureLogs().logger, connect: connectTo(server) },
    { ...place, backupName: `backup-${randomUUID()}`, immediateCheckpoint: true, walTimeoutMs: 60_000, ...request },
  );
}

async function restore(backupId: string, name: string) {
  const target = join(folder, name);
  const result = await restoreBaseBackup(
    { store, tree, clock: systemClock, logger: captureLogs().logger },
    {
      ...place,
      backupId,
      dataFolder: join(target, "data"),
      tablespaces: { space: join(target, "space") },
      sync: false,
    },
  );
  return { target, result };
}

/** What `diff` says of two folders, without the links that differ by design. */
async function differences(left: string, right: string): Promise<string> {
  const { stdout } = await run("diff", ["-r", "--no-dereference", "--exclude=pg_tblspc", left, right]).catch(
    (error: { stdout: string }) => error,
  );
  return stdout;
}

async function barmanRestore(backupId: string, name: string) {
  const target = join(folder, name);
  await mkdir(target, { recursive: true });
  const flags = ["--tablespace", `space:${join(target, "space")}`];
  const result = await barman.run("restore", [...flags, ...destination, backupId, join(target, "data")]);
  return { target, result };
}

describe.each(shared)("compression %s", (compression) => {
  const label = compression ?? "none";

  test("Barman lists, shows and restores what we backed up, and so do we", async () => {
    const taken = await backup({ compression, tags: { team: "data base" } });
    const shown = await barman.run("backup-show", ["--format", "json", ...destination, taken.backupName]);
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(shown.stdout).cloud).toMatchObject({
      backup_id: taken.backupId,
      status: "DONE",
      begin_wal: taken.beginWal,
      end_wal: taken.endWal,
      systemid: taken.systemId,
      tablespaces: [["space", expect.any(Number), spaceFolder]],
    });
    const theirs = await barmanRestore(taken.backupId, `theirs-${label}`);
    expect(theirs.result).toMatchObject({ code: 0 });
    const ours = await restore(taken.backupId, `ours-${label}`);
    expect(ours.result.files).toBeGreaterThan(500);
    expect(await differences(theirs.target, ours.target)).toBe("");
    await expect(tree.readLink(join(ours.target, "data/pg_tblspc", String(taken.tablespaces[0]?.oid)))).resolves.toBe(
      join(ours.target, "space"),
    );
  });

  test("we restore what Barman backed up", async () => {
    const name = `barman-${label}`;
    const flags = compression === undefined ? [] : [`--${compression}`];
    const server = ["-h", primary.socketDir, "-p", String(primary.port), "-U", "postgres", "--immediate-checkpoint"];
    const taken = await barman.run("backup", [...flags, ...server, "--name", name, ...destination]);
    expect(taken).toMatchObject({ code: 0 });
    const ours = await restore(name, `from-barman-${label}`);
    const theirs = await barmanRestore(ours.result.backupId, `from-barman-${label}-theirs`);
    expect(theirs.result).toMatchObject({ code: 0 });
    expect(await differences(theirs.target, ours.target)).toBe("");
  });
});

test("Barman reads our backup.info and would write the same bytes", async () => {
  const taken = await backup({ compression: "gzip" });
  const text = formatBackupInfo(taken.info);
  expect(parseBackupInfo(text)).toEqual(taken.info);
  const file = join(folder, "backup.info");
  await writeFile(file, text);
  const script = [
    "import io, sys",
    "import barman.output",
    "from barman.infofile import BackupInfo",
    "info = BackupInfo(sys.argv[2])",
    "info.load(file_object=open(sys.argv[1], 'rb'))",
    "out = io.BytesIO()",
    "info.save(file_object=out)",
    "sys.stdout.write(out.getvalue().decode())",
  ];
  const read = await barman.python(script.join("\n"), [file, taken.backupId]);
  expect(read).toMatchObject({ code: 0, stderr: "" });
  expect(read.stdout).toBe(text);
});

test("a server recovers from our backup to an exact row, and every relation is sound", async () => {
  const archive = { store, ...place };
  const taken = await backup({ compression: "zstd", maxArchiveBytes: 1_000_000 });
  await runSql(
    primary,
    "INSERT INTO t SELECT i, 'wanted' FROM generate_series(100001, 100100) i",
    "SELECT pg_create_restore_point('before_loss')",
    "DELETE FROM t",
  );
  const [last] = await runSql(primary, "SELECT pg_walfile_name(pg_current_wal_lsn()) AS name, pg_switch_wal()");
  await untilArchived(archive, String(last?.["name"]));
  const chosen = await chooseBaseBackup(store, place, { timeline: 1 });
  expect(chosen.id).toBe(taken.backupId);
  const space = join(folder, "recovered-space");
  const server = await startRestored({
    async restore(dataFolder) {
      await restoreBaseBackup(
        { store, tree, clock: systemClock, logger: captureLogs().logger },
        { ...place, backupId: taken.backupId, dataFolder, tablespaces: { space }, sync: false },
      );
    },
    recovery: { ...(await fetchArchivedWal(archive, { folder })), recovery_target_name: "before_loss" },
    ownedFolders: [space],
  });
  try {
    await untilPromoted(server, runSql);
    expect(await runSql(server, "SELECT count(*)::int AS n, max(id) AS last FROM t")).toEqual([
      { n: 20100, last: 100100 },
    ]);
    expect(await runSql(server, "SELECT count(*)::int AS n FROM s")).toEqual([{ n: 20000 }]);
    const check = ["-h", server.socketDir, "-p", String(server.port), "-U", "postgres", "--heapallindexed", "postgres"];
    await expect(run(join(server.binDir, "pg_amcheck"), check)).resolves.toMatchObject({ stdout: "" });
  } finally {
    await server.stop();
  }
});
