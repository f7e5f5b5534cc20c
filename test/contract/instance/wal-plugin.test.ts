import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Backup } from "../../../src/api/generated/backup.ts";
import {
  createPluginServer,
  type PluginServer,
  type PluginServices,
  StatusError,
} from "../../../src/plugin/framework/index.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

const name = "archiver.example.com";

let lab: Lab;
let one: LabInstance;
let archive: string;
let server: PluginServer | undefined;
/** While set, archiving waits for it. */
let hold: Promise<void> | undefined;
let held = 0;
let endWal = "";
const checks: (boolean | undefined)[] = [];
/** What the plugin was told that the oldest backup needs. */
const required: string[] = [];

const seconds = (time: string) => Date.parse(time) / 1000;
/** What the archive can restore, as the plugin measures it. */
const window = {
  barman_cloud_cloudnative_pg_io_first_recoverability_point: seconds("2025-12-01T00:00:00Z"),
  barman_cloud_cloudnative_pg_io_last_available_backup_timestamp: seconds("2026-01-01T00:01:00Z"),
};

const services: PluginServices = {
  wal: {
    async archive({ sourceFileName, checkEmptyWalArchive }) {
      checks.push(checkEmptyWalArchive);
      if (hold) {
        held += 1;
        await hold;
      }
      copyFileSync(sourceFileName, join(archive, basename(sourceFileName)));
    },
    restore({ sourceWalName, destinationFileName }) {
      const path = join(archive, sourceWalName);
      if (!existsSync(path)) throw new StatusError("NOT_FOUND", `${sourceWalName} is not here`);
      copyFileSync(path, destinationFileName);
    },
    setFirstRequired: ({ firstRequiredWal }) => void required.push(firstRequiredWal),
    status: () => ({
      firstWal: "000000010000000000000001",
      lastWal: "000000010000000000000002",
      additionalInformation: {},
    }),
  },
  backup: {
    backup: ({ cluster, backup, parameters }) => ({
      backupId: "20260101T000000",
      backupName: `${cluster.metadata.name}-${backup.metadata.name}`,
      startedAt: Date.parse("2026-01-01T00:00:00Z"),
      stoppedAt: Date.parse("2026-01-01T00:01:00Z"),
      beginWal: endWal,
      endWal,
      beginLsn: "0/3000028",
      endLsn: "0/3000100",
      backupLabelFile: Buffer.from("label"),
      tablespaceMapFile: new Uint8Array(),
      instanceId: "lab-1",
      online: true,
      metadata: { ...parameters, timeline: "1" },
    }),
  },
  postgres: {
    enrichConfiguration: ({ configs }) => ({ ...configs, "example.setting": "from the plugin" }),
  },
  metrics: {
    define: () => [
      {
        name: "example_archived_files",
        help: "Files here",
        type: "gauge",
        variableLabels: ["kind"],
        constLabels: { a: "b" },
      },
      ...Object.keys(window).map((metric) => ({
        name: metric,
        help: "As the plugin for Barman's archives tells it",
        type: "gauge" as const,
        variableLabels: [],
        constLabels: {},
      })),
    ],
    collect: () => [
      { name: "example_archived_files", value: 7, variableLabels: ["wal"] },
      ...Object.entries(window).map(([metric, time]) => ({ name: metric, value: time, variableLabels: [] })),
    ],
  },
};

async function startPlugin(): Promise<void> {
  mkdirSync(one.pluginFolder, { recursive: true });
  server = await createPluginServer({
    identity: {
      name,
      version: "1.0.0",
      displayName: "Archiver of a test",
      vendor: "Test",
      license: "MIT",
      licenseUrl: "https://example.com",
      projectUrl: "https://example.com",
      repositoryUrl: "https://example.com",
      description: "Copies files",
      injectsInstanceSidecar: true,
      maturity: "alpha",
    },
    services,
    listen: { kind: "socket", folder: one.pluginFolder },
    logger: captureLogs().logger,
  });
  // The instance runs as another user than this test.
  chmodSync(join(one.pluginFolder, name), 0o777);
}

beforeAll(async () => {
  archive = mkdtempSync(join(tmpdir(), "wal-plugin-"));
  lab = await Lab.start({ spec: { plugins: [{ name, isWALArchiver: true }] } });
  const capabilities = [
    "TYPE_WAL_SERVICE",
    "TYPE_BACKUP_SERVICE",
    "TYPE_METRICS",
    "TYPE_POSTGRES",
    "TYPE_INSTANCE_SIDECAR_INJECTION",
  ];
  await lab.patchStatus({
    pluginStatus: [
      {
        name,
        version: "1.0.0",
        capabilities,
        walCapabilities: ["TYPE_ARCHIVE_WAL", "TYPE_RESTORE_WAL", "TYPE_STATUS"],
      },
    ],
  });
  one = await lab.instance("lab-1");
});

afterAll(async () => {
  await server?.stop({ graceMs: 0 });
  await lab?.stop();
  if (archive) rmSync(archive, { recursive: true, force: true });
});

function finishSegment(): string {
  one.psql("SELECT pg_logical_emit_message(true, 'test', repeat('x', 1000))");
  return one.psql("SELECT pg_walfile_name(pg_switch_wal())");
}

/** Goes on finishing segments, since after three failures PostgreSQL waits a minute unless there is a new one. */
async function untilArchived(wanted: string): Promise<void> {
  await until(
    `${wanted} archived`,
    async () => {
      if (one.psql("SELECT last_archived_wal FROM pg_stat_archiver") >= wanted) return true;
      if (one.psql("SELECT coalesce(last_failed_time > now() - interval '1 s', false) FROM pg_stat_archiver") === "f") {
        finishSegment();
      }
      return false;
    },
    60_000,
  );
}

async function archivingIs(status: string) {
  return until(`archiving ${status}`, async () => {
    const conditions = (await lab.cluster()).status?.conditions;
    const condition = conditions?.find((entry) => entry.type === "ContinuousArchiving");
    return condition?.status === status && condition;
  });
}

const waits = (segment: string) => existsSync(join(one.pgData, "pg_wal/archive_status", `${segment}.ready`));

test("without its plugin PostgreSQL keeps the segment, and the condition names the plugin", async () => {
  expect(await one.job("initdb", ["--app-db-name=app", "--app-user=app"]).exit, one.output.slice(-2000)).toBe(0);
  await startPlugin();
  one.run();
  await one.ready();
  await until("current primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-1");
  await server?.stop({ graceMs: 0 });
  rmSync(join(one.pluginFolder, name), { force: true });
  const segment = finishSegment();
  const { message } = await archivingIs("False");
  expect(message).toBe(`wal archive plugin is not available: ${name}`);
  expect(waits(segment)).toBe(true);
  await startPlugin();
  await untilArchived(segment);
  expect(readFileSync(join(archive, segment)).length).toBe(16 << 20);
  expect(await archivingIs("True")).toMatchObject({ reason: "ContinuousArchivingSuccess" });
});

test("the first archive must find its place empty, later ones need not", async () => {
  const before = checks.length;
  await untilArchived(finishSegment());
  expect(checks[0]).toBe(true);
  expect(checks.slice(before)).toContain(false);
});

test("a plugin that dies in the middle of a call is a failure, and the file is asked for again", async () => {
  let release: () => void = () => undefined;
  hold = new Promise((resolve) => {
    release = resolve;
  });
  const segment = finishSegment();
  await until("a call under way", async () => held > 0);
  await server?.stop({ graceMs: 0 });
  rmSync(join(archive, segment), { force: true });
  expect((await archivingIs("False")).message).toContain(name);
  expect(waits(segment)).toBe(true);
  hold = undefined;
  release();
  await startPlugin();
  await untilArchived(segment);
  expect(readFileSync(join(archive, segment)).length).toBe(16 << 20);
});

test("the restore command asks the plugin", async () => {
  const segment = one.psql("SELECT last_archived_wal FROM pg_stat_archiver");
  const target = join(one.pgData, "restored");
  expect(await one.runCommand(["wal-restore", segment, target])).toBe(0);
  expect(readFileSync(target).equals(readFileSync(join(archive, segment)))).toBe(true);
  expect(await one.runCommand(["wal-restore", "0000000100000FFF00000001", target])).toBe(1);
});

test("a plugin's backup is complete only when its last segment is archived", async () => {
  await lab.apply({
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { name: "b1" },
    spec: { cluster: { name: "lab" }, method: "plugin", pluginConfiguration: { name, parameters: { a: "b" } } },
  });
  // The segment that is being written: nothing closes it but the wait for it.
  endWal = one.psql("SELECT pg_walfile_name(pg_current_wal_lsn())");
  expect(await one.runCommand(["backup", "b1"])).toBe(0);
  const status = await until("completed", async () => {
    const text = await lab.plane.kubectl(["get", "backup", "b1", "-n", "default", "-o", "json"]);
    const { status } = JSON.parse(text) as Backup;
    if (status?.phase === "failed") throw new Error(status.error);
    return status?.phase === "completed" && status;
  });
  expect(status).toMatchObject({
    backupId: "20260101T000000",
    backupName: "lab-b1",
    startedAt: "2026-01-01T00:00:00Z",
    stoppedAt: "2026-01-01T00:01:00Z",
    beginWal: endWal,
    endWal,
    beginLSN: "0/3000028",
    endLSN: "0/3000100",
    backupLabelFile: Buffer.from("label").toString("base64"),
    online: true,
    pluginMetadata: { a: "b", timeline: "1" },
  });
  expect(existsSync(join(archive, endWal))).toBe(true);
  const cluster = await until("the Cluster tells of it", async () => {
    const read = await lab.cluster();
    return read.status?.lastSuccessfulBackup === "2026-01-01T00:01:00Z" && read;
  });
  expect(cluster.status?.lastSuccessfulBackupByMethod).toEqual({ plugin: "2026-01-01T00:01:00Z" });
  // And the plugin hears what its retention has to spare.
  await until("the announcement", async () => required.length > 0);
  expect(required).toEqual([endWal]);
});

test("a plugin's backup of a quiet primary is complete once its label is archived: its last segment was before", async () => {
  const text = one.psql("SELECT pg_backup_start('b2', true); SELECT pg_walfile_name(lsn) FROM pg_backup_stop(false)");
  endWal = text.split("\n").at(-1) ?? "";
  await until("the label is archived", async () =>
    one.psql("SELECT last_archived_wal FROM pg_stat_archiver").startsWith(`${endWal}.`),
  );
  await lab.apply({
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { name: "b2" },
    spec: { cluster: { name: "lab" }, method: "plugin", pluginConfiguration: { name } },
  });
  expect(await one.runCommand(["backup", "b2"])).toBe(0);
  const phase = () => lab.plane.kubectl(["get", "backup", "b2", "-n", "default", "-o", "jsonpath={.status.phase}"]);
  await until("completed", async () => (await phase()) === "completed");
  expect(one.psql("SELECT last_archived_wal FROM pg_stat_archiver")).toMatch(/\.backup$/);
});

test("the plugin's settings are in the configuration, its metrics among the others", async () => {
  const setting = await until("the setting", async () => one.psql("SHOW example.setting"));
  expect(setting).toBe("from the plugin");
  const { body } = await one.metrics();
  expect(body).toContain('example_archived_files{a="b",kind="wal"} 7');
  expect(body).toContain(
    `cnpg_ts_archive_wal_info{first_wal="000000010000000000000001",last_wal="000000010000000000000002",plugin="${name}"} 1`,
  );
  expect(body).toContain("cnpg_collector_last_collection_error 0");
});

test("the Cluster and the metrics of old tell what the plugin's archive can restore", async () => {
  const told = await until("the Cluster tells it", async () => {
    const { status } = await lab.cluster();
    return status?.firstRecoverabilityPointByMethod?.["plugin"] === "2025-12-01T00:00:00Z" && status;
  });
  expect(told).toMatchObject({
    firstRecoverabilityPoint: "2025-12-01T00:00:00Z",
    lastSuccessfulBackup: "2026-01-01T00:01:00Z",
  });
  await until("the metrics follow", async () => {
    const { body } = await one.metrics();
    const shown = (name: string) => Number(new RegExp(`^cnpg_collector_${name} (\\S+)$`, "m").exec(body)?.[1]);
    return (
      shown("first_recoverability_point") === seconds("2025-12-01T00:00:00Z") &&
      shown("last_available_backup_timestamp") === seconds("2026-01-01T00:01:00Z")
    );
  });
});

test("metrics of a plugin that is away are missed, the others are there", async () => {
  await server?.stop({ graceMs: 0 });
  const { body } = await one.metrics();
  expect(body).not.toContain("example_archived_files");
  expect(body).toContain('cnpg_collector_collection_errors_total{collector="Collect.PluginMetrics"}');
  expect(body).toContain("cnpg_collector_up");
});
