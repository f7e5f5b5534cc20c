import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;

beforeAll(async () => {
  lab = await Lab.start({ spec: { enableSuperuserAccess: true } });
  one = await lab.instance("lab-1");
});

afterAll(() => lab?.stop());

const initArguments = [
  "--initdb-flags=--encoding=UTF8 --locale=C",
  "--app-db-name=app",
  "--app-user=app",
  `--post-init-sql='CREATE ROLE one' 'CREATE ROLE "t w o"'`,
  "--post-init-application-sql='CREATE TABLE mine AS SELECT 1 AS x'",
];

test("init makes a data folder with the application's database", async () => {
  const { exit } = one.job("initdb", initArguments);
  expect(await exit, one.output.slice(-2000)).toBe(0);
  expect(existsSync(join(one.pgData, "PG_VERSION"))).toBe(true);
  expect(existsSync(join(one.pgData, "standby.signal"))).toBe(false);
  expect(existsSync(join(one.pgData, ".check-empty-wal-archive"))).toBe(true);
  expect(readFileSync(join(one.pgData, "override.conf"), "utf8")).toMatch(/application_name=lab-1-initdb /);
});

test("run becomes the primary, holds the lease and answers its probes", async () => {
  one.run();
  await one.ready();
  const cluster = await until("current primary", async () => {
    const read = await lab.cluster();
    return read.status?.currentPrimary === "lab-1" && read;
  });
  expect(cluster.status?.currentPrimaryTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  const lease = await lab.lease();
  expect(lease.spec["holderIdentity"]).toBe("lab-1");
  expect(JSON.parse(lease.metadata.annotations?.["cnpg-ts.dev/voters"] ?? "{}")).toEqual({
    voters: ["lab-1"],
    holderUID: "uid-of-lab-1",
  });
  for (const path of ["/healthz", "/readyz", "/startupz", "/failsafe"]) {
    expect(await one.get(path)).toEqual({ status: 200, body: "OK" });
  }
  expect((await one.get("/nothing")).status).toBe(404);
});

test("the log says how long the system of the image will have updates", () => {
  const told = one.output.split("\n").filter((line) => line.includes("OS distribution"));
  expect(told).toHaveLength(existsSync("/etc/os-release") || existsSync("/usr/lib/os-release") ? 1 : 0);
});

test("roles, passwords and what the user asked for at init are there", async () => {
  const passwords =
    "SELECT string_agg(rolname, ',' ORDER BY rolname) FROM pg_authid WHERE rolpassword LIKE 'SCRAM-SHA-256$4096:%'";
  await until("passwords", async () => one.psql(passwords) === "app,postgres");
  const roles = one.psql("SELECT string_agg(rolname, ',' ORDER BY rolname) FROM pg_roles WHERE oid >= 16384");
  expect(roles).toBe("app,cnpg_metrics_exporter,one,streaming_replica,t w o");
  expect(one.psql("SELECT x FROM mine", "app")).toBe("1");
});

test("status has the shape that the operator reads", async () => {
  const status = await one.status();
  expect(status).toMatchObject({
    isPrimary: true,
    replayPaused: false,
    pendingRestart: false,
    pendingRestartForDecrease: false,
    isWalReceiverActive: false,
    isPgRewindRunning: false,
    mightBeUnavailable: false,
    node: "",
    pod: { metadata: { name: "lab-1" }, spec: { containers: null }, status: {} },
    lastArchivedWALTime: expect.stringMatching(/^(-infinity|\d{4}-.*Z)$/),
    lastFailedWALTime: expect.any(String),
    timeLineID: 1,
    instanceManagerVersion: "1.30.0",
    instanceArch: "amd64",
    isInstanceManagerUpgrading: false,
    isPodReady: false,
  });
  expect(status.systemID).toMatch(/^\d{19}$/);
  expect(status.currentLsn).toMatch(/^[0-9A-F]+\/[0-9A-F]+$/);
  expect(status.currentWAL).toMatch(/^0000000100000000[0-9A-F]{8}$/);
  expect(status.executableHash).toMatch(/^[0-9a-f]{64}$/);
  expect(status.sessionID).toMatch(/^[0-9a-f-]{36}$/);
  const custom = readFileSync(join(one.pgData, "custom.conf"), "utf8");
  expect(custom.trimEnd().split("\n").at(-1)).toBe(`cnpg.config_sha256 = '${status.loadedConfigurationHash}'`);
});

test("the status command prints what the manager answers", async () => {
  expect(JSON.parse(one.command(["instance", "status"]))).toMatchObject({
    isPrimary: true,
    pod: { metadata: { name: "lab-1" } },
  });
});

test("the local interface gives the Cluster and takes the archiving condition", async () => {
  const base = `http://127.0.0.1:${one.ports.local}`;
  const cluster = (await (await fetch(`${base}/cache/cluster`)).json()) as { metadata: { name: string } };
  expect(cluster.metadata.name).toBe("lab");
  expect((await fetch(`${base}/cache/wal-archive`)).status).toBe(404);
  expect((await fetch(`${base}/cache/nothing`)).status).toBe(404);
  const report = (error: string) =>
    fetch(`${base}/cluster/status/condition/wal/archive`, { method: "POST", body: JSON.stringify({ error }) });
  expect(await (await report("no space")).text()).toBe("OK");
  const condition = async () =>
    (await lab.cluster()).status?.conditions?.find(({ type }) => type === "ContinuousArchiving");
  expect(await condition()).toMatchObject({
    status: "False",
    reason: "ContinuousArchivingFailing",
    message: "no space",
  });
  await report("");
  expect(await condition()).toMatchObject({ status: "True", reason: "ContinuousArchivingSuccess" });
  // The first archived segment ends the check for an empty archive.
  await until("marker gone", async () => !existsSync(join(one.pgData, ".check-empty-wal-archive")));
});

test("only the operator reads the control data", async () => {
  expect(await one.get("/pg/controldata")).toEqual({ status: 401, body: "client certificate required" });
  expect(await one.get("/pg/controldata", { operator: true })).toEqual({
    status: 503,
    body: "operator certificate not registered",
  });
  await lab.patchStatus({ operatorCertificateFingerprint: "00" });
  await until("other key", async () => {
    const answer = await one.get("/pg/controldata", { operator: true });
    return answer.status === 503 && answer.body === "operator certificate not recognized";
  });
  await lab.patchStatus({ operatorCertificateFingerprint: lab.operatorFingerprint() });
  const { body } = await until("recognised", async () => {
    const answer = await one.get("/pg/controldata", { operator: true });
    return answer.status === 200 && answer;
  });
  expect((JSON.parse(body) as { data: string }).data).toContain("Database system identifier");
});

test("only the operator asks for the backup mode", async () => {
  expect(await one.get("/pg/mode/backup")).toEqual({ status: 401, body: "client certificate required" });
  expect(await one.get("/pg/mode/backup", { operator: true })).toEqual({ status: 200, body: '{"data":{}}' });
  expect((await one.get("/pg/mode/backup", { operator: true, method: "DELETE" })).status).toBe(405);
});

test("metrics tell that the server is up, and how the manager itself does", async () => {
  const { status, body } = await one.metrics();
  expect(status).toBe(200);
  expect(body).toMatch(/^cnpg_collector_up\{cluster="lab"\} 1$/m);
  const value = (name: string) => Number(new RegExp(`^nodejs_${name} (\\S+)$`, "m").exec(body)?.[1]);
  expect(value("eventloop_lag_seconds")).toBeGreaterThanOrEqual(0);
  expect(value("heap_size_used_bytes")).toBeGreaterThan(1_000_000);
  expect(value("heap_size_total_bytes")).toBeGreaterThanOrEqual(value("heap_size_used_bytes"));
  expect(value("active_resources_total")).toBeGreaterThan(0);
  expect(body).not.toMatch(/^(go|process)_/m);
});

test("a changed parameter is loaded without a restart, and one that needs a restart is told", async () => {
  const pid = one.postmasterPid();
  await lab.patchCluster({ spec: { postgresql: { parameters: { work_mem: "7MB" } } } });
  await until("work_mem", async () => one.psql("SHOW work_mem") === "7MB");
  await lab.patchCluster({
    spec: { postgresql: { parameters: { max_connections: "130", "pg_stat_statements.max": "5000" } } },
  });
  const status = await until("pending restart", async () => {
    const read = await one.status();
    return read.pendingRestart && read;
  });
  expect(status.pendingRestartForDecrease).toBe(false);
  const cluster = await until("phase", async () => {
    const read = await lab.cluster();
    return read.status?.phase === "Applying configuration" && read;
  });
  expect(cluster.status?.phaseReason).toBe("PostgreSQL configuration changed");
  expect(one.postmasterPid()).toBe(pid);
});

test("other images make PostgreSQL read its settings again although no file changed", async () => {
  const images = (image: string) => lab.patchStatus({ pgDataImageInfo: { image, majorVersion: 15 } });
  const told = () => one.output.match(/Detected running images/g)?.length ?? 0;
  const loadedAt = () => one.psql("SELECT pg_conf_load_time()");
  const files = () =>
    ["custom.conf", "override.conf", "pg_hba.conf"].map((name) => statSync(join(one.pgData, name)).ino);
  await images("localhost/postgresql:15.1");
  await until("the first images", async () => told() === 1);
  const [before, seen, loaded] = [files(), one.output.length, loadedAt()];
  await images("localhost/postgresql:15.2");
  await until("loaded again", async () => loadedAt() !== loaded);
  expect(told()).toBe(2);
  expect(one.output.slice(seen).match(/Requesting configuration reload/g)).toHaveLength(1);
  expect(files()).toEqual(before);
});

test("the records of a pass tell by the original's keys what it was about", async () => {
  const line = one.output.split("\n").find((text) => text.includes("Requesting configuration reload")) ?? "{}";
  expect(JSON.parse(line)).toMatchObject({
    level: "info",
    logger: "instance-manager",
    logging_pod: "lab-1",
    controller: "instance-cluster",
    controllerGroup: "postgresql.cnpg.io",
    controllerKind: "Cluster",
    Cluster: { name: "lab", namespace: "default" },
    namespace: "default",
    name: "lab",
    reconcileID: expect.stringMatching(/^[0-9a-f-]{36}$/),
    instance: "lab-1",
    cluster: "lab",
    pgdata: one.pgData,
  });
});

test("the phase for a restart in place restarts PostgreSQL and not the manager", async () => {
  const before = await one.status();
  const pid = one.postmasterPid();
  await lab.patchStatus({ phase: "Primary instance is being restarted in-place", phaseReason: "test" });
  const cluster = await until("healthy", async () => {
    const read = await lab.cluster();
    return read.status?.phase === "Cluster in healthy state" && read;
  });
  expect(cluster.status?.phaseReason).toBe("Primary instance restarted in-place");
  expect(one.psql("SHOW max_connections")).toBe("130");
  const extension = async () =>
    one.psql("SELECT count(*) FROM pg_extension WHERE extname = 'pg_stat_statements'", "app");
  await until("the extension that a parameter asks for", async () => (await extension()) === "1");
  expect(one.postmasterPid()).not.toBe(pid);
  expect((await one.status()).sessionID).toBe(before.sessionID);
});

test("an extension that no parameter asks for any more is dropped from every database", async () => {
  await lab.patchCluster({ spec: { postgresql: { parameters: { "pg_stat_statements.max": null } } } });
  const left = "SELECT count(*) FROM pg_extension WHERE extname = 'pg_stat_statements'";
  await until("dropped", async () => ["app", "postgres"].every((database) => one.psql(left, database) === "0"));
});

test("a killed postmaster is started again in place", async () => {
  const before = await one.status();
  process.kill(one.postmasterPid(), "SIGKILL");
  const started = Date.now();
  await until("writes", async () => one.psql("CREATE TABLE IF NOT EXISTS after_kill (); SELECT 1") === "1");
  expect(Date.now() - started).toBeLessThan(10_000);
  expect((await one.status()).sessionID).toBe(before.sessionID);
});

test("fencing stops PostgreSQL and keeps the manager, lifting it starts PostgreSQL", async () => {
  await lab.patchCluster({ metadata: { annotations: { "cnpg.io/fencedInstances": '["lab-1"]' } } });
  await until("down", async () => one.postgresProcesses().length === 0);
  const status = await until("masked status", async () => {
    const read = await one.status();
    return read.mightBeUnavailable && read;
  });
  expect(status.isPrimary).toBe(true);
  expect(status.mightBeUnavailableMaskedError).not.toBe("");
  expect((await one.get("/readyz")).status).toBe(500);
  expect(await one.get("/startupz")).toEqual({ status: 200, body: "Skipped" });
  expect((await one.get("/healthz")).status).toBe(200);
  expect((await lab.lease()).spec["holderIdentity"]).toBe("lab-1");
  await lab.patchCluster({ metadata: { annotations: { "cnpg.io/fencedInstances": null } } });
  await one.ready();
  expect(one.psql("SELECT 1")).toBe("1");
});

test("a renewed certificate is served without a restart", async () => {
  const pid = one.postmasterPid();
  const before = await one.peerSerial();
  await lab.renewServerCertificate();
  await lab.patchStatus({ secretsResourceVersion: { serverSecretVersion: "renewed" } });
  await until("new certificate", async () => (await one.peerSerial()) !== before);
  expect(one.postmasterPid()).toBe(pid);
  expect(statSync(join(one.scratch, "certificates", "server.key")).mode & 0o777).toBe(0o600);
});

test("writes go on while the API server is away", async () => {
  await lab.plane.stopApiServer("kill");
  try {
    const end = Date.now() + 14_000;
    while (Date.now() < end) {
      one.psql("CREATE TABLE IF NOT EXISTS api_away (at timestamptz); INSERT INTO api_away VALUES (now())");
      expect((await one.get("/healthz")).status).toBe(200);
      await sleep(1_000);
    }
  } finally {
    await lab.plane.startApiServer();
  }
  expect(one.running).toBe(true);
});

test("SIGTERM stops PostgreSQL in order, gives the lease back and ends the manager", async () => {
  one.signal("SIGTERM");
  expect(await one.exit).toBe(0);
  expect(one.postgresProcesses()).toEqual([]);
  const lease = await lab.lease();
  expect(lease.spec["holderIdentity"] ?? "").toBe("");
  expect(lease.spec["leaseDurationSeconds"]).toBe(1);
  expect(lease.metadata.annotations?.["cnpg-ts.dev/voters"]).toBeDefined();
  expect(one.control()).toContain("shut down");
});

test("a second start goes on where the first one ended", async () => {
  one.run();
  await one.ready();
  expect(one.psql("SELECT count(*) > 0 FROM api_away")).toBe("t");
  one.signal("SIGINT");
  expect(await one.exit).toBe(0);
});

test("init again keeps the data of before", async () => {
  const { exit } = one.job("initdb", initArguments);
  expect(await exit, one.output.slice(-2000)).toBe(0);
  expect(one.volumeEntries().filter((name) => /^pgdata_\d{8}t\d{6}Z$/.test(name))).toHaveLength(1);
});

test("init that is killed leaves nothing in the way of the next attempt", async () => {
  for (const afterMs of [100, 400, 900, 1_400]) {
    const job = one.job("initdb", initArguments);
    await sleep(afterMs);
    await job.kill();
  }
  const { exit } = one.job("initdb", initArguments);
  expect(await exit, one.output.slice(-2000)).toBe(0);
  expect(one.control()).toContain("shut down");
});
