// What the small clusters of the other tests do not have: large segments, several tablespaces, archives in several parts, tags
// and encryption. Each copy is started, and every relation of it is checked.
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { GetObjectTaggingCommand, HeadObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { readCatalog } from "../../../src/archive/archive-reader.ts";
import { findBaseBackup } from "../../../src/archive/base/find-base-backup.ts";
import { removeBackup } from "../../../src/archive/retention-run.ts";
import { planRetention } from "../../../src/barman/retention.ts";
import { listAll } from "../../../src/ports/object-store.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { type BarmanTools, barmanTools } from "../../support/barman.ts";
import type { PostgresServer } from "../../support/postgres-server.ts";
import { BaseLab, runSql } from "./base-lab.ts";

const bucket = "barman-matrix";
const tags = { team: "data base", "cost/centre": "a+b=c" };

// Many processes of Barman's tools, each of which takes seconds to start on a busy machine.
vi.setConfig({ testTimeout: 240_000 });

let lab: BaseLab;
let barman: BarmanTools;

beforeAll(async () => {
  lab = await BaseLab.start({ bucket, segmentMb: 64, tablespaces: ["space_one", "space_two"] });
  barman = await barmanTools(lab.s3);
  await runSql(
    lab.primary,
    "CREATE EXTENSION amcheck SCHEMA public",
    "CREATE TABLE public.t (id int PRIMARY KEY, pad text)",
    "INSERT INTO t SELECT i, repeat(md5(i::text), 10) FROM generate_series(1, 10000) i",
    "CREATE TABLE public.one TABLESPACE space_one AS SELECT * FROM t",
    "CREATE INDEX two ON one (id) TABLESPACE space_two",
    "CREATE TABLE public.two_too TABLESPACE space_two AS SELECT * FROM t",
  );
});

afterAll(async () => {
  await lab?.stop();
});

const flags = ["--immediate-checkpoint"];
const tablespaceFlags = (folders: Record<string, string>) =>
  Object.entries(folders).flatMap(([name, folder]) => ["--tablespace", `${name}:${folder}`]);

async function objectNames(backupId: string): Promise<string[]> {
  const folder = lab.keys.backupFolder(backupId);
  return (await listAll(lab.store, folder)).objects.map(({ key }) => key.slice(folder.length)).sort();
}

async function check(server: PostgresServer, rows: number): Promise<void> {
  const counts = "(SELECT count(*) FROM one) AS one, (SELECT count(*) FROM two_too) AS two, count(*) AS t FROM t";
  try {
    expect(await runSql(server, `SELECT ${counts}`)).toEqual([{ one: "10000", two: "10000", t: String(rows) }]);
    expect(await lab.amcheck(server)).toBe("");
    expect(await runSql(server, "SHOW wal_segment_size")).toEqual([{ wal_segment_size: "64MB" }]);
  } finally {
    await server.stop();
  }
}

test("what we back up in parts is stored with tags and encryption, and Barman's copy of it is sound", async () => {
  const store = await createS3Store({ ...lab.s3.options(bucket), encryption: "AES256" });
  const taken = await lab.backup({ compression: "lz4", maxArchiveBytes: 400_000, tags }, { store });
  store.close();
  const names = await objectNames(taken.backupId);
  const [one, two] = taken.tablespaces.map(({ oid }) => oid);
  expect(names).toEqual(
    expect.arrayContaining(["backup.info", "data.tar.lz4", "data_0002.tar.lz4", `${one}.tar.lz4`, `${two}.tar.lz4`]),
  );
  expect(names).toContain(`${two}_0001.tar.lz4`);
  const { endpoint, region, credentials } = lab.s3.options(bucket);
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true } as object);
  for (const name of names) {
    const object = { Bucket: bucket, Key: lab.keys.backupFolder(taken.backupId) + name };
    const { TagSet = [] } = await client.send(new GetObjectTaggingCommand(object));
    expect(Object.fromEntries(TagSet.map(({ Key, Value }) => [Key, Value]))).toEqual(tags);
    expect((await client.send(new HeadObjectCommand(object))).ServerSideEncryption).toBe("AES256");
  }
  client.destroy();

  await runSql(lab.primary, "INSERT INTO t SELECT i, 'later' FROM generate_series(20001, 20100) i");
  await lab.switchWal();
  const server = await lab.recovered({
    name: "by-barman",
    firstWal: taken.beginWal,
    async restore(dataFolder, tablespaces) {
      // Barman's tool wants to make the folder itself.
      const target = join(lab.folder, "by-barman", "data");
      const args = [...tablespaceFlags(tablespaces), ...lab.destination, taken.backupId, target];
      expect(await barman.run("restore", args)).toMatchObject({ code: 0 });
      await rename(target, dataFolder);
    },
    async fetch(walName, destination) {
      expect(await barman.run("wal-restore", [...lab.destination, walName, destination])).toMatchObject({ code: 0 });
    },
  });
  await check(server, 10_100);
});

test("what Barman backs up in parts we restore, and it is sound", async () => {
  const { socketDir, port } = lab.primary;
  const server = ["-h", socketDir, "-p", String(port), "-U", "postgres", "--max-archive-size", "1MB", "--jobs", "4"];
  const name = "in-parts-by-barman";
  const args = [...flags, "--snappy", ...server, "--tag", "team,data", "--name", name, ...lab.destination];
  expect(await barman.run("backup", args)).toMatchObject({ code: 0 });
  const { id, info } = await findBaseBackup(lab.store, BaseLab.place, name);
  expect(await objectNames(id)).toEqual(expect.arrayContaining(["data.tar.snappy", "data_0001.tar.snappy"]));
  const [{ n } = { n: 0 }] = await runSql(lab.primary, "SELECT count(*)::int AS n FROM t");
  await lab.switchWal();
  const copy = await lab.recovered({
    name: "by-us",
    firstWal: info.beginWal ?? "",
    restore: (dataFolder, tablespaces) => lab.restore(id, dataFolder, tablespaces),
  });
  await check(copy, Number(n));
});

test("what one side keeps or deletes is kept or gone for the other", async () => {
  const kept = await lab.backup({ compression: "snappy" });
  const other = await lab.backup({ compression: "gzip", maxArchiveBytes: 200_000 });
  const keep = (...args: string[]) => barman.run("backup-keep", [...args, ...lab.destination, kept.backupId]);
  expect(await keep("--target", "full")).toMatchObject({ code: 0 });
  const nothing = { kind: "recoveryWindow", ms: 1 } as const;
  const plan = planRetention(await readCatalog(lab.store, lab.keys), nothing, { nowMs: Date.now() + 86_400_000 });
  expect(plan.kind === "delete" && plan.classes.get(kept.backupId)).toBe("KEEP:FULL");

  const remove = (id: string) => barman.run("backup-delete", ["--backup-id", id, ...lab.destination]);
  expect(await remove(kept.backupId)).toMatchObject({ code: 1 });
  expect(await keep("--release")).toMatchObject({ code: 0 });
  expect((await keep("--status")).stdout).toContain("Keep: nokeep");
  expect(await remove(kept.backupId)).toMatchObject({ code: 0 });
  expect(await objectNames(kept.backupId)).toEqual([]);

  await removeBackup(lab.store, lab.keys, other.backupId);
  expect(await objectNames(other.backupId)).toEqual([]);
  const listed = await barman.run("backup-list", ["--format", "json", ...lab.destination]);
  const { backups_list: left } = JSON.parse(listed.stdout) as { backups_list: { backup_id: string }[] };
  const { backups } = await readCatalog(lab.store, lab.keys);
  expect(left.map(({ backup_id }) => backup_id)).toEqual(backups.map(({ id }) => id));
  expect(backups.map(({ id }) => id)).not.toContain(other.backupId);
});

test("Barman's check finds our archive filled, but not beyond its timeline", async () => {
  expect(await barman.run("check-wal-archive", lab.destination.slice())).toMatchObject({ code: 1 });
  expect(await barman.run("check-wal-archive", ["--timeline", "2", ...lab.destination])).toMatchObject({ code: 0 });
});
