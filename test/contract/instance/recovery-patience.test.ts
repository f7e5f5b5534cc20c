import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync } from "node:fs";
import { chmod, chown, copyFile, mkdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../../../local/process/wait.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { WalError } from "../../../src/archive/wal-error.ts";
import { WalRequests } from "../../../src/instance/wal/wal-requests.ts";
import { WalServer } from "../../../src/instance/wal/wal-server.ts";
import type { InTreeWal } from "../../../src/instance/wal/wal-sources.ts";
import { recoveryPatienceMs } from "../../../src/plan/instance/wal.ts";
import type { Clock } from "../../../src/ports/clock.ts";
import { createFiles } from "../../../src/process/files.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { startRestored } from "../../support/restored-server.ts";
import { installPod } from "../launcher/pod.ts";

/** How much faster than the real one the manager's clock goes: the five minutes of its patience take as many seconds. */
const speed = 60;
const fastClock: Clock = {
  now: () => systemClock.now(),
  monotonicMs: () => systemClock.monotonicMs() * speed,
  sleep: (ms, signal) => systemClock.sleep(ms / speed, signal),
};

const run = promisify(execFile);
const archive = { configuration: { destinationPath: "s3://b/" }, serverName: "origin", field: "test" };
const logs = captureLogs();
let root: string;
let copy: string;
let wal: string;
let source: PostgresServer;
let server: WalServer;
/** Segments that the archive still gives before it falls silent. */
let given = Number.POSITIVE_INFINITY;

async function sql(...texts: string[]): Promise<string> {
  const { socketDir: host, port } = source;
  const target = { host, port, user: "postgres", database: "postgres", applicationName: "test" };
  const session = await createSqlConnector().connect(target);
  try {
    let rows: Record<string, unknown>[] = [];
    for (const text of texts) rows = await session.query(text);
    return String(Object.values(rows[0] ?? {})[0] ?? "");
  } finally {
    await session.close();
  }
}

/** An archive that has what lies in a folder, until it does not answer any more. */
const inTree = {
  async restore(_archive, { name, destination }) {
    const isSegment = /^[0-9A-F]{24}$/.test(name);
    if (isSegment && given === 0)
      throw new WalError("unavailable", `cannot restore ${name}: the store does not answer`);
    if (!existsSync(join(wal, name))) throw new WalError("notFound", `${name} does not exist`);
    if (isSegment) given -= 1;
    await copyFile(join(wal, name), destination);
    await chown(destination, source.user.uid, source.user.gid);
  },
} satisfies Partial<InTreeWal>;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "patience-"));
  chmodSync(root, 0o755);
  [copy, wal] = [join(root, "copy"), join(root, "wal")];
  source = await startPostgres({
    settings: { archive_mode: "on", archive_command: `cp %p ${wal}/%f` },
    async prepare(_dataDir, { uid, gid }) {
      for (const folder of [copy, wal]) {
        await mkdir(folder, { mode: 0o700 });
        await chown(folder, uid, gid);
      }
    },
  });
  await sql("CREATE TABLE public.n (id int)");
  const { uid, gid, binDir, socketDir, port } = { ...source, ...source.user };
  const target = ["-D", copy, "-X", "none", "-c", "fast", "-h", socketDir, "-p", String(port), "-U", "postgres"];
  await run(join(binDir, "pg_basebackup"), target, { uid, gid, cwd: "/" });
  let last = "";
  for (const id of [1, 2, 3, 4]) {
    last = await sql(`INSERT INTO public.n VALUES (${id})`, "SELECT pg_walfile_name(pg_switch_wal())");
  }
  await waitFor("everything is archived", async () => existsSync(join(wal, last)), { timeoutMs: 60_000 });

  await installPod(root);
  const cluster = { metadata: { name: "c" }, spec: {}, status: {} } as unknown as Cluster;
  const requests = new WalRequests({
    podName: "c-1-full-recovery",
    pgData: "/nowhere",
    markerPath: "/nowhere/marker",
    cluster: () => cluster,
    purpose: async () => "recovery",
    clock: fastClock,
    files: createFiles(),
    sizeOf: async (path) => (await stat(path)).size,
    status: { setCondition: async () => undefined },
    plugins: { names: async () => [], use: () => Promise.reject(new Error("not asked")), close: async () => undefined },
    inTree: async () => inTree as unknown as InTreeWal,
    restoreSource: () => ({ kind: "archive", archive, streamingAvailable: false }),
    logger: logs.logger,
  });
  server = new WalServer(requests, logs.logger);
  await server.listen(createFiles(), join(root, "ipc", "wal.sock"));
  await chmod(join(root, "ipc"), 0o755);
  await chown(join(root, "ipc", "wal.sock"), uid, gid);
}, 120_000);

afterAll(async () => {
  await server?.close();
  await source?.stop();
  await rm(root, { recursive: true, force: true });
});

/** Recovers the copy by the real launcher's restore command, with nobody let in before the end. */
function recover(): Promise<PostgresServer> {
  return startRestored({
    // PostgreSQL names the destination relative to its own folder, where the command runs.
    recovery: {
      restore_command: `POD_NAME=c-1 ${root}/manager wal-restore %f "$PWD/%p"`,
      recovery_target_timeline: "latest",
      hot_standby: "off",
    },
    restore: async (dataFolder) => void (await run("cp", ["-a", `${copy}/.`, dataFolder])),
  });
}

test("an archive that falls silent stops a recovery after five minutes, and never ends it", async () => {
  given = 2;
  const began = fastClock.monotonicMs();
  const failure = await recover().then(
    async (ended) => {
      await ended.stop();
      return "it recovered";
    },
    (error: Error) => error.message,
  );
  expect(failure).toMatch(/restored log file "[0-9A-F]{24}" from archive/);
  expect(failure).toMatch(/FATAL: {2}could not restore file "[0-9A-F]{24}" from archive/);
  expect(failure).not.toMatch(/archive recovery complete|selected new timeline/);
  expect(fastClock.monotonicMs() - began).toBeGreaterThan(recoveryPatienceMs - 15_000);
  const waits = logs.records.filter(({ message }) => /recovery is kept waiting/.test(message));
  expect(waits.length).toBeGreaterThan(3);
}, 120_000);

test("once it answers again the same recovery reaches the end of the archive", async () => {
  given = Number.POSITIVE_INFINITY;
  const recovered = await recover();
  try {
    const { socketDir: host, port } = recovered;
    const target = { host, port, user: "postgres", database: "postgres", applicationName: "test" };
    const session = await createSqlConnector().connect(target);
    const [row] = await session.query("SELECT string_agg(id::text, ',' ORDER BY id) AS ids FROM public.n");
    await session.close();
    expect(row?.["ids"]).toBe("1,2,3,4");
    expect(recovered.output()).toMatch(/archive recovery complete/);
  } finally {
    await recovered.stop();
  }
}, 120_000);
