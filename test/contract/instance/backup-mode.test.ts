// The backup mode of an instance against a real PostgreSQL: what the operator asks over HTTP, and what the server then holds.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Backup } from "../../../src/api/generated/backup.ts";
import { BackupMode } from "../../../src/instance/backup/backup-mode.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { closeLocalSessions } from "../../../src/instance/local-sql.ts";
import { answerBackupMode } from "../../../src/instance/web/backup-mode-api.ts";
import { createRemoteServer, type RemoteServer } from "../../../src/instance/web/remote-server.ts";
import { resources } from "../../../src/kube/resources.ts";
import type { SqlSession } from "../../../src/ports/sql-session.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { createFakeKubeApi, type FakeKubeApi } from "../../support/fake-kube-api.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";

let server: PostgresServer;
let sql: SqlSession;
let kube: FakeKubeApi;
let context: InstanceContext;
let mode: BackupMode;
let web: RemoteServer;
let url: string;

const signal = new AbortController().signal;

beforeAll(async () => {
  server = await startPostgres({ settings: { wal_level: "replica", max_wal_senders: "4" } });
  const connector = createSqlConnector();
  const target = { host: server.socketDir, port: server.port, user: "postgres", database: "postgres" };
  sql = await connector.connect({ ...target, applicationName: "test" });
  kube = createFakeKubeApi({ clock: systemClock });
  context = {
    settings: { namespace: "ns", postgresPort: server.port },
    paths: { socketDir: server.socketDir },
    state: {},
    kube,
    sql: connector,
    localSessions: new Set(),
    clock: systemClock,
    logger: captureLogs().logger,
  } as unknown as InstanceContext;
  mode = new BackupMode(context);
  web = createRemoteServer((request) => answerBackupMode(mode, request), { tls: false });
  url = `http://127.0.0.1:${await web.listen(0)}`;
});

afterAll(async () => {
  await closeLocalSessions(context);
  await web?.close();
  await sql?.close();
  await server?.stop();
});

interface Answer {
  status: number;
  body: {
    data?: Record<string, string> & { data?: Record<string, string> };
    error?: { code: string; message: string };
  };
}

async function ask(method: string, body?: unknown): Promise<Answer> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(url, { method, ...(body === undefined ? {} : { body: text }) });
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}

/** Looks until no other request is in progress, as the operator does. */
async function settled(): Promise<Answer["body"]> {
  for (;;) {
    const { body } = await ask("GET");
    if (body.error?.code !== "ANOTHER_REQUEST_IN_PROGRESS") return body;
    await sleep(20);
  }
}

const start = (backupName: string, more: object = {}) =>
  ask("POST", { backupName, immediateCheckpoint: true, waitForArchive: false, ...more });
const slots = async () =>
  (await sql.query("SELECT slot_name, temporary, restart_lsn IS NOT NULL AS keeps FROM pg_replication_slots")).map(
    (row) => ({ ...row }),
  );
const gone = async () => {
  while ((await slots()).length > 0) await sleep(20);
  return true;
};
const seed = (name: string, phase: string) =>
  kube.seed(resources.backups, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Backup",
    metadata: { namespace: "ns", name },
    spec: { cluster: { name: "c" }, method: "volumeSnapshot" },
    status: { phase },
  } as Backup);

test("there is none at first, and what cannot be read is refused", async () => {
  expect(await ask("GET")).toEqual({ status: 200, body: { data: {} } });
  expect(await ask("PUT", { backupName: "b" })).toMatchObject({
    status: 400,
    body: { error: { code: "NO_ONGOING_BACKUP" } },
  });
  for (const body of ["{", "[]", {}, { backupName: "b", waitForArchive: "yes" }]) {
    for (const method of ["POST", "PUT"]) {
      const answer = await ask(method, body);
      expect(answer).toMatchObject({ status: 400, body: { error: { code: "FAILED_TO_PARSE_REQUEST" } } });
    }
  }
  expect((await ask("DELETE")).status).toBe(405);
  expect((await ask("PATCH", {})).status).toBe(405);
});

test("starts, keeps its WAL by a temporary slot, ends with label and positions, and leaves nothing", async () => {
  const begun = await start("My-backup.1");
  expect(begun).toEqual({ status: 200, body: { data: { data: { backupName: "My-backup.1", phase: "starting" } } } });
  const { data } = await settled();
  expect(data).toEqual({
    backupName: "My-backup.1",
    phase: "started",
    beginLSN: expect.stringMatching(/^0\/[0-9A-F]+$/),
  });
  expect(await slots()).toEqual([{ slot_name: "_y_backup_1", temporary: true, keeps: true }]);
  expect(await ask("PUT", { backupName: "other" })).toMatchObject({
    status: 422,
    body: { error: { code: "NOT_CURRENT_RUNNING_BACKUP" } },
  });
  const closing = await ask("PUT", { backupName: "My-backup.1" });
  expect(closing.status).toBe(200);
  expect(closing.body.data?.data).toMatchObject({ backupName: "My-backup.1", phase: "closing" });
  const ended = (await settled()).data ?? {};
  expect(ended).toMatchObject({ phase: "completed", beginLSN: data?.["beginLSN"] });
  expect(ended["endLSN"]).toMatch(/^0\/[0-9A-F]+$/);
  const label = Buffer.from(ended["labelFile"] ?? "", "base64").toString();
  expect(label).toContain("LABEL: My-backup.1");
  expect(label).toContain(`START WAL LOCATION: ${data?.["beginLSN"]}`);
  expect(ended).not.toHaveProperty("spcmapFile");
  expect(await gone()).toBe(true);
  // Asked again, because the answer was lost: the same.
  expect((await ask("PUT", { backupName: "My-backup.1" })).body.data?.data).toEqual(ended);
});

test("answers nobody else while it starts, and cannot be ended before it has started", async () => {
  // A checkpoint that is spread out takes its time.
  await sql.query("CREATE TABLE public.load AS SELECT g, repeat('x', 500) FROM generate_series(1, 20000) g");
  await start("slow", { immediateCheckpoint: false });
  for (const [method, body] of [
    ["GET"],
    ["POST", { backupName: "second" }],
    ["PUT", { backupName: "slow" }],
  ] as const) {
    expect(await ask(method, body)).toMatchObject({
      status: 422,
      body: { error: { code: "ANOTHER_REQUEST_IN_PROGRESS" } },
    });
  }
  seed("slow", "failed");
  await mode.tidy(signal);
  const { data, error } = await settled();
  expect(data).toMatchObject({ backupName: "slow", phase: "completed" });
  expect(error?.code).toBe("BACKUP_STATUS_CONTAINS_ERROR");
  expect(error?.message).toContain("is over: failed");
  expect(await gone()).toBe(true);
});

test("a second start gives the first one up", async () => {
  await start("first");
  await settled();
  await start("second");
  expect((await settled()).data).toMatchObject({ backupName: "second", phase: "started" });
  expect((await slots()).map((it) => (it as { slot_name?: string }).slot_name)).toEqual(["second"]);
});

test("says so when the session is lost, and cannot be ended any more", async () => {
  await start("lost");
  await settled();
  await sql.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cnpg-backup-mode'");
  const { data, error } = await settled();
  expect(data).toMatchObject({ backupName: "lost", phase: "completed" });
  expect(error?.code).toBe("BACKUP_STATUS_CONTAINS_ERROR");
  expect(await ask("PUT", { backupName: "lost" })).toMatchObject({
    status: 422,
    body: { error: { code: "BACKUP_FAILED" } },
  });
  expect(await gone()).toBe(true);
});

test("is given up when its Backup is gone, and stays while its Backup waits for it", async () => {
  seed("wanted", "started");
  await start("wanted");
  await settled();
  await mode.tidy(signal);
  expect((await settled()).data).toMatchObject({ phase: "started" });
  await kube.delete(resources.backups, { namespace: "ns", name: "wanted" });
  await mode.tidy(signal);
  const { error } = await settled();
  expect(error?.message).toContain("Backup wanted is gone");
  expect(await gone()).toBe(true);
});

test("shows why PostgreSQL refused, and ends with the instance's other sessions", async () => {
  await sql.query("SELECT pg_create_physical_replication_slot('taken')");
  await start("taken");
  const refused = await settled();
  expect(refused.error?.message).toContain("already exists");
  await sql.query("SELECT pg_drop_replication_slot('taken')");
  await start("open");
  await settled();
  await closeLocalSessions(context);
  expect((await settled()).error?.message).toContain("closed before the backup ended");
  expect(await gone()).toBe(true);
});

test("says that the server cannot be reached", async () => {
  const away = { ...context, settings: { ...context.settings, postgresPort: server.port + 1 } } as InstanceContext;
  const outcome = await new BackupMode(away).start({
    backupName: "b",
    immediateCheckpoint: true,
    waitForArchive: false,
  });
  expect(outcome).toMatchObject({ failure: { code: "CANNOT_INITIALIZE_CONNECTION" } });
});
