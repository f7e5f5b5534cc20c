// Barman 3.20 on Debian 13, the version that later releases of the plugin carry, and our engine on the same archive.
import { mkdir, mkdtemp, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { readCatalog } from "../../../src/archive/archive-reader.ts";
import { findBaseBackup } from "../../../src/archive/base/find-base-backup.ts";
import { WalRestorer } from "../../../src/archive/wal-restorer.ts";
import { planRetention } from "../../../src/barman/retention.ts";
import { createFiles } from "../../../src/process/files.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { createBulkFiles } from "../../../src/store/bulk-files.ts";
import type { BarmanTools } from "../../support/barman.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { newerBarmanTools } from "../../support/newer-barman.ts";
import { makeSegment } from "../../support/wal-segment.ts";
import { BaseLab, runSql } from "./base-lab.ts";

vi.setConfig({ testTimeout: 300_000 });

let lab: BaseLab;
let barman: Pick<BarmanTools, "run">;

beforeAll(async () => {
  lab = await BaseLab.start({ bucket: "newer-barman" });
  barman = await newerBarmanTools(lab.s3);
  await runSql(
    lab.primary,
    "CREATE EXTENSION amcheck SCHEMA public",
    "CREATE TABLE public.t AS SELECT i, repeat(md5(i::text), 10) AS pad FROM generate_series(1, 5000) i",
  );
  // The first run on a machine installs Debian.
}, 900_000);

afterAll(async () => {
  await lab?.stop();
});

async function check(server: Awaited<ReturnType<BaseLab["recovered"]>>, rows: number): Promise<void> {
  try {
    expect(await runSql(server, "SELECT count(*)::int AS rows FROM t")).toEqual([{ rows }]);
    expect(await lab.amcheck(server)).toBe("");
  } finally {
    await server.stop();
  }
}

test("it lists, shows and restores what we backed up, with the WAL that we archived", async () => {
  const taken = await lab.backup({ compression: "gzip" });
  await runSql(lab.primary, "INSERT INTO t SELECT i, 'later' FROM generate_series(1, 100) i");
  await lab.switchWal();
  const listed = await barman.run("backup-list", ["--format", "json", ...lab.destination]);
  expect(listed).toMatchObject({ code: 0 });
  expect(JSON.parse(listed.stdout).backups_list).toMatchObject([{ backup_id: taken.backupId, status: "DONE" }]);
  const shown = await barman.run("backup-show", ["--format", "json", ...lab.destination, taken.backupName]);
  expect(JSON.parse(shown.stdout).cloud).toMatchObject({ backup_id: taken.backupId, end_wal: taken.endWal });
  const server = await lab.recovered({
    name: "by-it",
    firstWal: taken.beginWal,
    async restore(dataFolder) {
      const target = join(lab.folder, "by-it", "data");
      expect(await barman.run("restore", [...lab.destination, taken.backupId, target])).toMatchObject({ code: 0 });
      await rename(target, dataFolder);
    },
    async fetch(walName, destination) {
      expect(await barman.run("wal-restore", [...lab.destination, walName, destination])).toMatchObject({ code: 0 });
    },
  });
  await check(server, 5100);
});

test("what it backs up and archives we restore", async () => {
  const { socketDir, port } = lab.primary;
  const server = ["-h", socketDir, "-p", String(port), "-U", "postgres", "--immediate-checkpoint", "--lz4"];
  const taken = await barman.run("backup", [...server, "--name", "by-newer", ...lab.destination]);
  expect(taken, taken.stderr).toMatchObject({ code: 0 });
  const { id, info } = await findBaseBackup(lab.store, BaseLab.place, "by-newer");
  await lab.switchWal();
  const copy = await lab.recovered({
    name: "by-us",
    firstWal: info.beginWal ?? "",
    restore: (dataFolder, tablespaces) => lab.restore(id, dataFolder, tablespaces),
  });
  await check(copy, 5100);

  const place = { path: BaseLab.place.path, serverName: "wal-only" };
  const folder = await mkdtemp(join(lab.folder, "wal-only-"));
  const name = "000000010000000000000007";
  await writeFile(join(folder, name), makeSegment(name));
  const archived = await barman.run("wal-archive", [
    "--gzip",
    lab.destination[0] ?? "",
    "wal-only",
    join(folder, name),
  ]);
  expect(archived, archived.stderr).toMatchObject({ code: 0 });
  const ports = { store: lab.store, files: createFiles(), bulk: createBulkFiles(), clock: systemClock };
  const restorer = new WalRestorer(
    { ...place, spoolFolder: join(folder, "spool"), prefetch: 0 },
    { ...ports, random: systemRandom, logger: captureLogs().logger },
  );
  await mkdir(join(folder, "restored"));
  await restorer.restore({ name, destination: join(folder, "restored", name) });
  await restorer.close();
  expect((await readFile(join(folder, "restored", name))).equals(makeSegment(name))).toBe(true);
});

test("what it keeps is kept, what it deletes is gone, and our archive is filled to it", async () => {
  const { backups } = await readCatalog(lab.store, lab.keys);
  const [first, second] = backups.map(({ id }) => id);
  const keep = (...args: string[]) => barman.run("backup-keep", [...args, ...lab.destination, second ?? ""]);
  expect(await keep("--target", "full")).toMatchObject({ code: 0 });
  const nothing = { kind: "recoveryWindow", ms: 1 } as const;
  const plan = planRetention(await readCatalog(lab.store, lab.keys), nothing, { nowMs: Date.now() + 86_400_000 });
  expect(plan.kind === "delete" && plan.classes.get(second ?? "")).toBe("KEEP:FULL");
  const remove = (id = "") => barman.run("backup-delete", ["--backup-id", id, ...lab.destination]);
  expect(await remove(second)).toMatchObject({ code: 1 });
  expect(await remove(first)).toMatchObject({ code: 0 });
  expect((await readCatalog(lab.store, lab.keys)).backups.map(({ id }) => id)).toEqual([second]);
  expect(await barman.run("check-wal-archive", lab.destination)).toMatchObject({ code: 1 });
});
