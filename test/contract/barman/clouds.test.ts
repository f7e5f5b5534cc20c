// Barman's tools and our engine on the same archives in Azure Blob Storage and Google Cloud Storage, as S3's neighbours show it
// in more depth. The store is opened from what a user writes.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { restoreBaseBackup } from "../../../src/archive/base/restore-base-backup.ts";
import { takeBaseBackup } from "../../../src/archive/base/take-base-backup.ts";
import { WalArchiver } from "../../../src/archive/wal-archiver.ts";
import { WalRestorer } from "../../../src/archive/wal-restorer.ts";
import type { CompressionName } from "../../../src/barman/compression.ts";
import { buildConnection, type StoreConfiguration } from "../../../src/barman/store-configuration.ts";
import type { ObjectStore } from "../../../src/ports/object-store.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { createObjectStore, type StoreEnvironment } from "../../../src/store/create-store.ts";
import { createTreeFiles } from "../../../src/store/tree-files.ts";
import { archivePorts } from "../../support/archive-ports.ts";
import { fetchArchivedWal, untilArchived, untilPromoted } from "../../support/archived-recovery.ts";
import { type AzureServer, startAzureServer } from "../../support/azure-server.ts";
import { type BarmanTools, barmanToolsWith } from "../../support/barman.ts";
import { type GcsServer, startGcsServer } from "../../support/gcs-server.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { startRestored } from "../../support/restored-server.ts";
import { serverSessions } from "../../support/server-session.ts";
import { makeSegment } from "../../support/wal-segment.ts";
import { startWalSpool, type WalSpool } from "../../support/wal-spool.ts";

const run = promisify(execFile);
// Each of Barman's tools takes seconds to start when the machine is busy.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });
const tree = createTreeFiles();
const { connectTo, runSql } = serverSessions("clouds-test");
const path = "deep/path";

interface Cloud {
  configuration: StoreConfiguration;
  secrets: Readonly<Record<string, string>>;
  environment: StoreEnvironment;
  barman: BarmanTools;
}

let azure: AzureServer;
let gcs: GcsServer;
let folder: string;
let primary: PostgresServer;

const clouds: Record<string, () => Promise<Cloud>> = {
  azure: async () => ({
    configuration: {
      destinationPath: `${azure.endpoint}/archive/${path}`,
      azureCredentials: { connectionString: { name: "azure", key: "connection" } },
    },
    secrets: { connection: azure.connectionString },
    environment: {},
    barman: await barmanToolsWith(["--cloud-provider", "azure-blob-storage"], {
      AZURE_STORAGE_CONNECTION_STRING: azure.connectionString,
    }),
  }),
  gcs: async () => ({
    configuration: { destinationPath: `gs://archive/${path}`, googleCredentials: { gkeEnvironment: true } },
    secrets: {},
    environment: { STORAGE_EMULATOR_HOST: gcs.endpoint },
    barman: await barmanToolsWith(["--cloud-provider", "google-cloud-storage"], {
      STORAGE_EMULATOR_HOST: gcs.endpoint,
      GOOGLE_CLOUD_PROJECT: "test",
      // Else its library looks for the metadata of a machine first.
      NO_GCE_CHECK: "true",
    }),
  }),
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "clouds-"));
  [azure, gcs] = await Promise.all([startAzureServer(), startGcsServer()]);
  await run("chmod", ["755", folder]);
  primary = await startPostgres({ settings: { archive_mode: "on", archive_command: "false", wal_level: "replica" } });
  await runSql(primary, "CREATE TABLE public.t AS SELECT i, md5(i::text) FROM generate_series(1, 20000) i");
  // The first run on a machine builds and installs the servers.
}, 900_000);

afterAll(async () => {
  await primary?.stop();
  await Promise.all([azure?.stop(), gcs?.stop()]);
  if (folder) await rm(folder, { recursive: true, force: true });
});

describe.each(Object.keys(clouds))("%s", (name) => {
  let cloud: Cloud;
  let barman: BarmanTools;
  let store: ObjectStore;

  beforeAll(async () => {
    cloud = await (clouds[name] as () => Promise<Cloud>)();
    barman = cloud.barman;
    const connection = buildConnection(cloud.configuration, ({ key }) => cloud.secrets[key]);
    if ("error" in connection) throw new Error(connection.error);
    store = await createObjectStore(connection, cloud.environment);
    const destination = [cloud.configuration.destinationPath, "nobody"];
    // The tool makes the container or bucket.
    expect(await barman.run("check-wal-archive", destination)).toMatchObject({ code: 0 });
    expect(await store.checkBucket()).toBe("present");
  });
  afterAll(() => store?.close());

  const destination = (serverName: string) => [cloud.configuration.destinationPath, serverName];
  const ports = () => archivePorts(store);

  async function walFolder(serverName: string): Promise<string> {
    const wal = join(folder, name, serverName, "pg_wal");
    await mkdir(join(wal, "archive_status"), { recursive: true });
    return wal;
  }

  test.each(["xz", undefined] as (CompressionName | undefined)[])(
    "WAL goes both ways with compression %s",
    async (compression) => {
      const serverName = `wal-${compression ?? "none"}`;
      const wal = await walFolder(serverName);
      const [ours, theirs] = ["000000010000000000000003", "000000010000000000000004"];
      for (const file of [ours, theirs]) await writeFile(join(wal, file), makeSegment(file));
      const archiver = new WalArchiver(
        {
          path,
          serverName,
          destination: name,
          walFolder: wal,
          recordFolder: join(wal, "../records"),
          compression,
          tags: { team: "data base" },
        },
        ports(),
      );
      await archiver.archive({ path: join(wal, ours), checkEmpty: true });
      await archiver.close();
      const flags = compression === undefined ? [] : [`--${compression}`];
      const archived = await barman.run("wal-archive", [...flags, ...destination(serverName), join(wal, theirs)]);
      expect(archived).toMatchObject({ code: 0 });
      expect(await barman.run("check-wal-archive", destination(serverName))).toMatchObject({ code: 1 });

      const restored = join(wal, "restored");
      expect(await barman.run("wal-restore", [...destination(serverName), ours, restored])).toMatchObject({ code: 0 });
      expect((await readFile(restored)).equals(await readFile(join(wal, ours)))).toBe(true);
      const restorer = new WalRestorer({ path, serverName, spoolFolder: join(wal, "../spool") }, ports());
      await restorer.restore({ name: theirs, destination: join(wal, "RECOVERYXLOG") });
      expect((await readFile(join(wal, "RECOVERYXLOG"))).equals(await readFile(join(wal, theirs)))).toBe(true);
      await expect(
        restorer.restore({ name: "000000010000000000000009", destination: join(wal, "RECOVERYXLOG") }),
      ).rejects.toMatchObject({ kind: "notFound" });
      await restorer.close();
    },
  );

  describe("base backups", () => {
    const serverName = "base";
    const place = { path, serverName };
    let spool: WalSpool;

    beforeAll(async () => {
      const spoolFolder = join(folder, name, "base-wal");
      spool = await startWalSpool({ store, ...place, folder: spoolFolder, owner: primary.user });
      await run("chmod", ["755", join(folder, name)]);
      await runSql(primary, `ALTER SYSTEM SET ${spool.archiveSetting}`, "SELECT pg_reload_conf()");
    });
    afterAll(() => spool?.stop());

    async function restoreBoth(backupId: string, label: string): Promise<string> {
      const [theirs, ours] = [join(folder, name, `${label}-theirs`), join(folder, name, `${label}-ours`)];
      await mkdir(theirs, { recursive: true });
      const restored = await barman.run("restore", [...destination(serverName), backupId, theirs]);
      expect(restored).toMatchObject({ code: 0 });
      const deps = { store, tree, clock: systemClock, logger: captureLogs().logger };
      await restoreBaseBackup(deps, { ...place, backupId, dataFolder: ours, sync: false });
      const same = await run("diff", ["-r", theirs, ours]).catch((error: { stdout: string }) => error);
      return same.stdout;
    }

    test("ours is listed, restored, kept and deleted by Barman, and restored by us", async () => {
      const deps = { store, tree, clock: systemClock, logger: captureLogs().logger, connect: connectTo(primary) };
      const taken = await takeBaseBackup(deps, {
        ...place,
        backupName: "ours",
        immediateCheckpoint: true,
        walTimeoutMs: 60_000,
        compression: "gzip",
        tags: { team: "data base" },
        // So that it takes several archives, and each of them several parts.
        maxArchiveBytes: 8 << 20,
      });
      const listed = await barman.run("backup-list", ["--format", "json", ...destination(serverName)]);
      expect(listed).toMatchObject({ code: 0 });
      expect(JSON.parse(listed.stdout).backups_list).toMatchObject([{ backup_id: taken.backupId, status: "DONE" }]);
      expect(await restoreBoth(taken.backupId, "of-ours")).toBe("");
      const keep = await barman.run("backup-keep", ["--target", "full", ...destination(serverName), taken.backupId]);
      expect(keep).toMatchObject({ code: 0 });
      const remove = ["-b", taken.backupId, ...destination(serverName)];
      expect(await barman.run("backup-delete", remove)).toMatchObject({ code: 1 });
      await barman.run("backup-keep", ["--release", ...destination(serverName), taken.backupId]);
      // Google's library deletes in batches, whose answers by this server it cannot read.
      if (name === "gcs") return;
      expect(await barman.run("backup-delete", remove)).toMatchObject({ code: 0 });
      const after = await barman.run("backup-list", ["--format", "json", ...destination(serverName)]);
      expect(JSON.parse(after.stdout).backups_list).toEqual([]);
    });

    test("a server comes up from it with the rows up to the target and no others", async () => {
      const archive = { store, ...place };
      const deps = { store, tree, clock: systemClock, logger: captureLogs().logger };
      const taken = await takeBaseBackup(
        { ...deps, connect: connectTo(primary) },
        { ...place, backupName: "to-start", immediateCheckpoint: true, walTimeoutMs: 60_000, compression: "lz4" },
      );
      const point = `wanted_${name}`;
      await runSql(
        primary,
        `CREATE TABLE public.after_${name} AS SELECT generate_series(1, 100) AS id`,
        `SELECT pg_create_restore_point('${point}')`,
        `INSERT INTO after_${name} VALUES (101)`,
      );
      const [last] = await runSql(primary, "SELECT pg_walfile_name(pg_current_wal_lsn()) AS name, pg_switch_wal()");
      await untilArchived(archive, String(last?.["name"]));
      const wal = await fetchArchivedWal(archive, { folder: join(folder, name), first: taken.beginWal });
      const server = await startRestored({
        async restore(dataFolder) {
          await restoreBaseBackup(deps, { ...place, backupId: taken.backupId, dataFolder, sync: false });
        },
        recovery: { ...wal, recovery_target_name: point },
      });
      try {
        await untilPromoted(server, runSql);
        expect(await runSql(server, "SELECT count(*)::int AS n FROM t")).toEqual([{ n: 20000 }]);
        const rows = `SELECT count(*)::int AS n, max(id) AS last FROM after_${name}`;
        expect(await runSql(server, rows)).toEqual([{ n: 100, last: 100 }]);
      } finally {
        await server.stop();
      }
    });

    test("Barman's is restored by both", async () => {
      const server = ["-h", primary.socketDir, "-p", String(primary.port), "-U", "postgres", "--immediate-checkpoint"];
      const taken = await barman.run("backup", [...server, "--snappy", "--name", "theirs", ...destination(serverName)]);
      expect(taken).toMatchObject({ code: 0 });
      const shown = await barman.run("backup-show", ["--format", "json", ...destination(serverName), "theirs"]);
      expect(await restoreBoth(JSON.parse(shown.stdout).cloud.backup_id, "of-theirs")).toBe("");
    });
  });
});
