import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, lstat, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../../../local/process/wait.ts";
import type { Backup } from "../../../src/api/generated/backup.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { serverKeys } from "../../../src/barman/object-keys.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { PluginBackupResult } from "../../../src/ports/plugin.ts";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { anExternalStore } from "../../support/barman-cloud-objects.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { type CommandBridge, openBridge } from "./command-bridge.ts";
import {
  bucket,
  namespace,
  openSidecarLab,
  type RunningSidecar,
  type SidecarLab,
  startSidecar,
} from "./sidecar-lab.ts";

let lab: SidecarLab;
let source: PostgresServer;
let bridge: CommandBridge;
let sidecar: RunningSidecar;
let work: string;
let taken: PluginBackupResult;

const backupObject = (name: string): Backup => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Backup",
  metadata: { namespace, name, uid: `uid-${name}` },
  spec: { cluster: { name: "orders" }, method: "plugin" },
});

async function query(server: PostgresServer, text: string) {
  const { socketDir: host, port } = server;
  const session = await createSqlConnector().connect({
    host,
    port,
    user: "postgres",
    database: "postgres",
    applicationName: "t",
  });
  try {
    return await session.query(text);
  } finally {
    await session.close();
  }
}

beforeAll(async () => {
  lab = await openSidecarLab();
  await lab.useStore({
    wal: { compression: "zstd" },
    data: { compression: "gzip", immediateCheckpoint: true, jobs: 2 },
  });
  work = await mkdtemp(join(tmpdir(), "plugin-backup-"));
  await chmod(work, 0o777);
  const folder = join(work, "archive");
  bridge = await openBridge(folder, async (_name, path) => {
    const sourceFileName = join(source.dataDir, path);
    await sidecar.plugin.wal.archive({ cluster: lab.cluster(), sourceFileName });
    return true;
  });
  await chmod(folder, 0o777);
  source = await startPostgres({ settings: { archive_mode: "on", archive_command: bridge.command } });
  const { dataDir, socketDir, port } = source;
  sidecar = await startSidecar(lab, { env: { PGDATA: dataDir, PGHOST: socketDir, PGPORT: String(port) } });
}, 240_000);

afterAll(async () => {
  await sidecar?.stop();
  await source?.stop();
  await bridge?.stop();
  await lab?.stop();
  await rm(work, { recursive: true, force: true });
});

const windowNow = async () => {
  const store = await lab.world.api.get(resources.objectStores, { namespace, name: "own" });
  return store.status?.serverRecoveryWindow?.["orders"];
};

describe("a base backup through the socket", () => {
  test("is taken once for one Backup, and answered as the Backup's status needs it", async () => {
    await query(source, "CREATE TABLE public.kept AS SELECT generate_series(1, 1000) AS n");
    const request = { cluster: lab.cluster(), backup: backupObject("first") };
    const [one, two] = await Promise.all([
      sidecar.plugin.backup.backup(request),
      sidecar.plugin.backup.backup(request),
    ]);
    expect(two).toEqual(one);
    taken = one;
    expect(taken).toMatchObject({
      backupId: expect.stringMatching(/^\d{8}T\d{6}$/),
      backupName: expect.stringMatching(/^backup-\d{14}$/),
      beginWal: expect.stringMatching(/^[0-9A-F]{24}$/),
      beginLsn: expect.stringMatching(/^[0-9A-F]+\/[0-9A-F]+$/),
      instanceId: "orders-1",
      online: true,
      metadata: {
        timeline: "1",
        version: "0.14.0",
        name: "barman-cloud.cloudnative-pg.io",
        displayName: "BarmanCloudInstance",
        pluginName: "barman-cloud.cloudnative-pg.io",
        clusterUID: lab.cluster().metadata.uid,
      },
    });
    expect((taken.stoppedAt ?? 0) >= (taken.startedAt ?? Number.NaN)).toBe(true);
  }, 90_000);

  test("is listed by Barman, and told in the ObjectStore's status and the metrics", async () => {
    const list = await lab.barman.run("backup-list", ["--format", "json", `s3://${bucket}/clusters`, "orders"]);
    const { backups_list: listed } = JSON.parse(list.stdout) as { backups_list: Record<string, unknown>[] };
    expect(listed).toMatchObject([
      {
        backup_id: taken.backupId,
        backup_name: taken.backupName,
        begin_wal: taken.beginWal,
        end_wal: taken.endWal,
        status: "DONE",
      },
    ]);
    const stopped = `${new Date(taken.stoppedAt ?? 0).toISOString().slice(0, 19)}Z`;
    expect(await windowNow()).toEqual({ firstRecoverabilityPoint: stopped, lastSuccessfulBackupTime: stopped });
    const collected = await sidecar.plugin.metrics.collect(lab.cluster());
    const seconds = (taken.stoppedAt ?? 0) / 1000;
    expect(collected.map(({ value }) => value)).toEqual([seconds, seconds, 0]);
  });

  test("that fails is noted, and keeps what is known of good ones", async () => {
    const broken = await startSidecar(lab, { env: { PGDATA: source.dataDir, PGHOST: "/nowhere" } });
    try {
      const failing = broken.plugin.backup.backup({ cluster: lab.cluster(), backup: backupObject("broken") });
      await expect(failing).rejects.toMatchObject({ message: expect.stringContaining("/nowhere") });
      const window = await windowNow();
      expect(window?.lastFailedBackupTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(window?.lastSuccessfulBackupTime).toBeDefined();
      expect((await broken.plugin.metrics.collect(lab.cluster()))[2]?.value).toBeGreaterThan(0);
    } finally {
      await broken.stop();
    }
  }, 60_000);
});

describe("a recovery Job", () => {
  const recovering = (target = {}, parameters = {}): Cluster => {
    const base = lab.cluster(
      {
        bootstrap: { recovery: { source: "old", recoveryTarget: target } },
        externalClusters: [anExternalStore("old", { barmanObjectName: "own", serverName: "orders", ...parameters })],
      },
      {},
    );
    return { ...base, metadata: { ...base.metadata, name: "copy" } };
  };
  let restoring: RunningSidecar;
  let pgData: string;

  beforeAll(async () => {
    pgData = join(work, "restored");
    restoring = await startSidecar(lab, {
      mode: "restore",
      env: { PGDATA: pgData, POD_NAME: "copy-1-full-recovery", CLUSTER_NAME: "copy" },
    });
  }, 60_000);
  afterAll(() => restoring?.stop());

  test("offers restores and WAL", () => {
    expect(restoring.plugin.capabilities.restoreJob).toEqual(["KIND_RESTORE"]);
    expect(restoring.plugin.capabilities.services).toEqual(["TYPE_RESTORE_JOB", "TYPE_WAL_SERVICE"]);
  });

  test("says what cannot be restored, before it touches the data folder", async () => {
    const restore = (cluster: Cluster) => restoring.plugin.restoreJob.restore({ cluster });
    await expect(restore(recovering({ targetTime: "2001-01-01 00:00:00" }))).rejects.toMatchObject({
      message: expect.stringContaining("no target backup found"),
    });
    await expect(restore(recovering({ backupID: "20010101T000000" }))).rejects.toMatchObject({
      message: expect.stringContaining("no backup found with ID 20010101T000000"),
    });
    await expect(restore(recovering({}, { barmanObjectName: "" }))).rejects.toMatchObject({
      message: expect.stringContaining("barmanObjectName"),
    });
    const same = { ...recovering(), metadata: { ...lab.cluster().metadata } };
    await expect(restore(same)).rejects.toMatchObject({
      message: expect.stringContaining("is the archive that the cluster would archive into itself: server orders"),
    });
    await lab.store.put(serverKeys("clusters", "filled").wal("000000010000000000000001"), [Buffer.from("wal")]);
    await expect(restore({ ...recovering(), metadata: { ...same.metadata, name: "filled" } })).rejects.toMatchObject({
      message: expect.stringContaining("Expected empty archive"),
    });
    expect(existsSync(pgData)).toBe(false);
  });

  test("restores the folder, and PostgreSQL recovers by the plugin what was written after the backup", async () => {
    await query(source, "CREATE TABLE public.later AS SELECT generate_series(1, 500) AS n");
    const [row] = await query(source, "SELECT pg_walfile_name(pg_switch_wal()) AS name");
    const last = String(row?.["name"]);
    await waitFor(
      "the last segment is archived",
      async () => {
        const [status] = await query(source, "SELECT last_archived_wal FROM pg_stat_archiver");
        return String(status?.["last_archived_wal"]) >= last;
      },
      { timeoutMs: 60_000 },
    );
    const cluster = recovering();
    cluster.spec.walStorage = { size: "1Gi" };
    const volume = join(work, "wal-volume/pg_wal");
    const withVolume = await startSidecar(lab, {
      mode: "restore",
      walVolume: volume,
      env: { PGDATA: pgData, POD_NAME: "copy-1-full-recovery", CLUSTER_NAME: "copy" },
    });
    try {
      const { restoreConfig, envs } = await withVolume.plugin.restoreJob.restore({ cluster });
      expect(envs).toEqual([]);
      expect(restoreConfig).toBe(
        "recovery_target_action = promote\nrestore_command = '/controller/manager wal-restore --log-destination /controller/log/postgres.json %f %p'\n",
      );
    } finally {
      await withVolume.stop();
    }
    expect((await lstat(join(pgData, "pg_wal"))).isSymbolicLink()).toBe(true);
    expect(existsSync(volume)).toBe(true);

    const folder = join(work, "restore");
    const restores = await openBridge(folder, async (name, path) => {
      const destinationFileName = join(recovered.dataDir, path);
      await restoring.plugin.wal.restore({ cluster, sourceWalName: name, destinationFileName });
      await chown(destinationFileName, recovered.user.uid, recovered.user.gid);
      return true;
    });
    await chmod(folder, 0o777);
    const recovered = { dataDir: "", user: source.user };
    const server = await startPostgres({
      settings: { restore_command: restores.command, recovery_target_action: "promote" },
      async prepare(dataDir, user) {
        const settings = await readFile(join(dataDir, "postgresql.conf"), "utf8");
        await rm(dataDir, { recursive: true });
        await rename(pgData, dataDir);
        await writeFile(join(dataDir, "postgresql.conf"), settings);
        await writeFile(join(dataDir, "recovery.signal"), "");
        execFileSync("chown", ["-R", `${user.uid}:${user.gid}`, dataDir, join(work, "wal-volume")]);
        recovered.dataDir = dataDir;
      },
    });
    try {
      const isOpen = async () => {
        const [state] = await query(server, "SELECT NOT pg_is_in_recovery() AS open");
        return state?.["open"] === true;
      };
      await waitFor("recovery is over", isOpen, { timeoutMs: 60_000 });
      const [counts] = await query(
        server,
        "SELECT (SELECT count(*)::int FROM public.kept) AS kept, (SELECT count(*)::int FROM public.later) AS later",
      );
      expect(counts).toEqual({ kept: 1000, later: 500 });
    } finally {
      await server.stop();
      await restores.stop();
    }
  }, 150_000);
});
