import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Backup } from "../../../src/api/generated/backup.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { type BarmanTools, barmanTools } from "../../support/barman.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

const destination = "s3://archive/deep";

let s3: S3Server;
let barman: BarmanTools;
let lab: Lab;
let one: LabInstance;
let folder: string;

function keys(secret: string): object {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "keys" },
    stringData: { id: `${s3.accessKey}\n`, secret },
  };
}

beforeAll(async () => {
  s3 = await startS3Server();
  barman = await barmanTools(s3);
  const store = await createS3Store(s3.options("archive"));
  await store.checkBucket({ create: true });
  store.close();
  folder = mkdtempSync(join(tmpdir(), "wal-archive-"));
  const s3Credentials = {
    accessKeyId: { name: "keys", key: "id" },
    secretAccessKey: { name: "keys", key: "secret" },
  };
  const wal = { compression: "gzip" as const, maxParallel: 2 };
  const barmanObjectStore = { destinationPath: destination, endpointURL: s3.endpoint, s3Credentials, wal };
  lab = await Lab.start({ spec: { backup: { barmanObjectStore } } });
  await lab.apply(keys(s3.secretKey));
  one = await lab.instance("lab-1");
});

afterAll(async () => {
  await lab?.stop();
  await s3?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Finishes the current segment with something in it, and gives its name. */
function finishSegment(): string {
  one.psql("SELECT pg_logical_emit_message(true, 'test', repeat('x', 1000))");
  return one.psql("SELECT pg_walfile_name(pg_switch_wal())");
}

async function untilArchived(name: string): Promise<void> {
  const archived = async () => one.psql("SELECT last_archived_wal FROM pg_stat_archiver") >= name;
  await until(`${name} archived`, archived, 60_000);
}

async function archiving() {
  const { status } = await lab.cluster();
  return status?.conditions?.find((condition) => condition.type === "ContinuousArchiving");
}

const conditionIs = (status: string) =>
  until(`archiving ${status}`, async () => {
    const condition = await archiving();
    return condition?.status === status && condition;
  });

test("a finished segment goes into the archive, where Barman restores it from", async () => {
  expect(await one.job("initdb", ["--app-db-name=app", "--app-user=app"]).exit, one.output.slice(-2000)).toBe(0);
  one.run();
  await one.ready();
  await until("current primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-1");
  const name = finishSegment();
  await untilArchived(name);
  expect(await conditionIs("True")).toMatchObject({
    reason: "ContinuousArchivingSuccess",
    message: "Continuous archiving is working",
  });
  await until("marker gone", async () => !existsSync(join(one.pgData, ".check-empty-wal-archive")));

  const target = join(folder, name);
  expect(await barman.run("wal-restore", [destination, "lab", name, target])).toMatchObject({ code: 0 });
  const dump = execFileSync(join(lab.binDir, "pg_waldump"), ["--stats", target]).toString();
  expect(dump).toMatch(/Transaction/);
  // Filled now, which is what its check tells.
  expect((await barman.run("check-wal-archive", [destination, "lab"])).code).toBe(1);
});

test("many segments at once are archived ahead, each once, and records go when nobody asks any more", async () => {
  const names = Array.from({ length: 6 }, finishSegment);
  await untilArchived(names.at(-1) ?? "");
  for (const name of names) {
    const target = join(folder, name);
    expect(await barman.run("wal-restore", [destination, "lab", name, target])).toMatchObject({ code: 0 });
  }
  await until("records dropped", async () => readdirSync(join(one.scratch, "wal-archive-spool")).length <= 1);
});

test("the restore command gives what was archived, and code 1 only for what is not there", async () => {
  const name = one.psql("SELECT last_archived_wal FROM pg_stat_archiver");
  const target = join(one.pgData, "restored");
  one.command(["wal-restore", name, "restored"].concat(["--pg-data", one.pgData]));
  const barmanTarget = join(folder, "again");
  await barman.run("wal-restore", [destination, "lab", name, barmanTarget]);
  expect(readFileSync(target).equals(readFileSync(barmanTarget))).toBe(true);
  rmSync(target);
  expect(() => one.command(["wal-restore", "0000000100000FFF00000001", "restored"])).toThrow(/not found/);
  expect(existsSync(target)).toBe(false);
});

test("refused credentials: PostgreSQL keeps the segment, the condition says why, and rotation needs no restart", async () => {
  await lab.apply(keys("wrong"));
  const name = finishSegment();
  // The old credentials may still serve the first segments after the change.
  const refused = await until("archiving fails", async () => {
    finishSegment();
    const condition = await archiving();
    return condition?.status === "False" && condition;
  });
  expect(refused).toMatchObject({
    reason: "ContinuousArchivingFailing",
    message: expect.stringMatching(/^cannot archive /),
  });
  const waiting = () => one.command(["show", "wal-archive-queue"]).trim().split("\n");
  expect(waiting().length).toBeGreaterThan(0);

  // A backup would be worth nothing now, and says what it waits for.
  await lab.apply({
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { name: "b1" },
    spec: { cluster: { name: "lab" } },
  });
  expect(await one.runCommand(["backup", "b1"])).toBe(0);
  expect(await backupIs("b1", "walArchivingFailing")).toMatchObject({ destinationPath: destination });

  await lab.apply(keys(s3.secretKey));
  const last = await until(
    "archiving again",
    async () => {
      const finished = finishSegment();
      return (await archiving())?.status === "True" && finished;
    },
    90_000,
  );
  await untilArchived(last);
  const target = join(folder, "kept");
  expect(await barman.run("wal-restore", [destination, "lab", name, target])).toMatchObject({ code: 0 });
});

async function backupIs(name: string, phase: string) {
  return until(
    `Backup ${name} ${phase}`,
    async () => {
      const text = await lab.plane.kubectl(["get", "backup", name, "-n", "default", "-o", "json"]);
      const { status } = JSON.parse(text) as Backup;
      if (status?.phase === "failed" && phase !== "failed") throw new Error(status.error);
      return status?.phase === phase && status;
    },
    60_000,
  );
}

test("a Backup is taken once however often it is started, and Barman knows it", async () => {
  expect(await Promise.all([one.runCommand(["backup", "b1"]), one.runCommand(["backup", "b1"])])).toEqual([0, 0]);
  const status = await backupIs("b1", "completed");
  expect(status).toMatchObject({
    method: "barmanObjectStore",
    backupId: expect.stringMatching(/^\d{8}T\d{6}$/),
    backupName: expect.stringMatching(/^backup-\d{14}$/),
    beginWal: expect.stringMatching(/^[0-9A-F]{24}$/),
    endLSN: expect.stringMatching(/^[0-9A-F]+\/[0-9A-F]+$/),
    destinationPath: destination,
    serverName: "lab",
    endpointURL: s3.endpoint,
    s3Credentials: { accessKeyId: { name: "keys", key: "id" } },
    startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    reconciliationTerminatedAt: expect.any(String),
  });
  expect(status.error).toBeUndefined();

  const { stdout } = await barman.run("backup-list", ["--format", "json", destination, "lab"]);
  const { backups_list: listed } = JSON.parse(stdout) as { backups_list: { backup_id: string; status: string }[] };
  expect(listed).toMatchObject([{ backup_id: status.backupId, status: "DONE" }]);
  // The last segment it needs is there too.
  const target = join(folder, status.endWal ?? "");
  expect(await barman.run("wal-restore", [destination, "lab", status.endWal ?? "", target])).toMatchObject({ code: 0 });

  const cluster = await until("the Cluster tells of it", async () => {
    const read = await lab.cluster();
    return read.status?.lastSuccessfulBackup !== undefined && read;
  });
  expect(cluster.status).toMatchObject({
    firstRecoverabilityPoint: status.stoppedAt,
    lastSuccessfulBackup: status.stoppedAt,
    firstRecoverabilityPointByMethod: { barmanObjectStore: status.stoppedAt },
    conditions: expect.arrayContaining([
      expect.objectContaining({ type: "LastBackupSucceeded", status: "True", message: "Backup was successful" }),
    ]),
  });
  const seconds = Date.parse(status.stoppedAt ?? "") / 1000;
  const told = /^cnpg_collector_last_available_backup_timestamp (\S+)$/m;
  await until("metrics tell of it", async () => Number(told.exec((await one.metrics()).body)?.[1]) === seconds);
});

test("a backup whose end the manager did not come to write is looked up by its name after a restart", async () => {
  const left = async (name: string, backupName: string) => {
    await lab.apply({
      apiVersion: "postgresql.cnpg.io/v1",
      kind: "Backup",
      metadata: { name },
      spec: { cluster: { name: "lab" } },
    });
    const status = { phase: "running", backupName, destinationPath: destination, serverName: "lab" };
    const patch = JSON.stringify({ status: { ...status, instanceID: { podName: "lab-1", sessionID: "before" } } });
    await lab.plane.kubectl([
      "patch",
      "backup",
      name,
      "-n",
      "default",
      "--subresource=status",
      "--type=merge",
      "-p",
      patch,
    ]);
  };
  const { backupId, backupName = "", beginWal, endLSN, stoppedAt } = await backupIs("b1", "completed");
  await one.kill();
  await left("complete", backupName);
  await left("cut-off", "backup-20260101000000");
  one.run();
  await one.ready(60_000);
  expect((await one.status()).cnpgTs?.endsBackups).toBe(true);
  const found = { backupId, backupName, beginWal, endLSN, stoppedAt };
  expect(await backupIs("complete", "completed")).toMatchObject(found);
  expect((await backupIs("cut-off", "failed")).error).toBe("instance manager was restarted during backup on pod lab-1");
});

test("a start that cannot be is refused, with the reason", async () => {
  expect(await one.runCommand(["backup", "nobody"])).toBe(1);
  await lab.apply({
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { name: "b2" },
    spec: { cluster: { name: "lab" }, method: "plugin", pluginConfiguration: { name: "nobody.example.com" } },
  });
  expect(await one.runCommand(["backup", "b2"])).toBe(0);
  const status = await backupIs("b2", "failed");
  expect(status.error).toBe("requested plugin is not available: nobody.example.com");
  const cluster = await until("the Cluster tells of it", async () => {
    const read = await lab.cluster();
    return read.status?.lastFailedBackup !== undefined && read;
  });
  expect(cluster.status?.conditions).toContainEqual(
    expect.objectContaining({ type: "LastBackupSucceeded", status: "False", reason: "LastBackupFailed" }),
  );
});

test("the unfinished segment of a fenced primary is archived on the operator's request", async () => {
  const ask = () => one.get("/pg/archive/partial", { operator: true });
  await lab.patchStatus({ operatorCertificateFingerprint: lab.operatorFingerprint() });
  const early = await until("the operator is known", async () => {
    const answer = await ask();
    return answer.status !== 503 && answer;
  });
  expect(early).toMatchObject({ status: 400, body: expect.stringContaining('"code":"NOT_FENCED"') });
  await lab.patchCluster({ metadata: { annotations: { "cnpg.io/fencedInstances": '["lab-1"]' } } });
  const { body } = await until("fenced", async () => {
    const answer = await ask();
    return answer.status === 200 && answer;
  });
  const { data } = JSON.parse(body) as { data: string };
  const store = await createS3Store(s3.options("archive"));
  expect(await store.head(`deep/lab/wals/${data.slice(0, 16)}/${data}.partial.gz`)).toMatchObject({
    size: expect.any(Number),
  });
  store.close();
  expect(await barman.run("wal-restore", [destination, "lab", data, join(folder, `${data}.part`)])).toMatchObject({
    code: 0,
  });
  expect(existsSync(join(one.pgData, "pg_wal", `${data}.partial`))).toBe(false);
});
