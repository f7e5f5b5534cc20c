import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { replicaConditions, replicaConditionTexts } from "../../../src/api/replica-conditions.ts";
import { parseControlData, shutDownStates } from "../../../src/postgres/control-data.ts";
import { buildPromotionToken } from "../../../src/postgres/promotion-token.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

/** Two clusters, each with an API server of its own, that name each other as external clusters. */
let a: Lab;
let b: Lab;
let a1: LabInstance;
let b1: LabInstance;
let b2: LabInstance;
/** Where the first cluster archives to. */
let s3: S3Server;

const initArguments = ["--initdb-flags=--encoding=UTF8 --locale=C -k", "--app-db-name=app", "--app-user=app"];
const unrecoverable = "Cluster is unrecoverable and needs manual intervention";
const standbys = "SELECT application_name FROM pg_stat_replication WHERE state = 'streaming'";
let tokenOfA = "";
let tokenOfB = "";

type Secret = { data: Record<string, string> };

/** Makes the credentials for `source` known in `follower`, and gives its entry among the external clusters. */
async function introduce(source: Lab, follower: Lab, name: string) {
  const read = async (secret: string) =>
    JSON.parse(await source.plane.kubectl(["get", "secret", secret, "-n", "default", "-o", "json"])) as Secret;
  const [client, server] = await Promise.all([read("lab-replication"), read("lab-ca")]);
  const data = { ...client.data, "ca.crt": server.data["ca.crt"] };
  await follower.apply({ apiVersion: "v1", kind: "Secret", metadata: { name: `of-${name}` }, data });
  const key = (field: string) => ({ name: `of-${name}`, key: field });
  return {
    name,
    connectionParameters: {
      host: "127.0.0.1",
      port: String(source.proxy.port),
      user: "streaming_replica",
      sslmode: "verify-ca",
      dbname: "postgres",
    },
    sslCert: key("tls.crt"),
    sslKey: key("tls.key"),
    sslRootCert: key("ca.crt"),
  };
}

const status = async (lab: Lab) => (await lab.cluster()).status ?? {};
const isCurrent = (lab: Lab, name: string) =>
  until(`${name} is current primary`, async () => (await status(lab)).currentPrimary === name);
const follows = (instance: LabInstance, table: string, rows: number) =>
  until(
    `${table} on ${instance.name}`,
    async () => instance.psql(`SELECT count(*) FROM ${table}`) === String(rows),
    60_000,
  );

function condition(type: string, value: "True" | "False", texts: { reason: string; message: string }) {
  return { type, status: value, ...texts, lastTransitionTime: "2026-01-01T00:00:00Z" };
}

/** Plays the operator's part in the demotion of a cluster with one instance, and gives the token. */
async function demote(lab: Lab, instance: LabInstance, primary: string): Promise<string> {
  await lab.patchCluster({ spec: { replica: { primary, promotionToken: null } } });
  await lab.patchStatus({
    operatorCertificateFingerprint: lab.operatorFingerprint(),
    conditions: [condition(replicaConditions.transition, "False", replicaConditionTexts.begun)],
  });
  await lab.patchCluster({ metadata: { annotations: { "cnpg.io/fencedInstances": '["*"]' } } });
  await until("the transition is completed", async () =>
    (await status(lab)).conditions?.some(
      (it) => it.type === replicaConditions.transition && it.status === "True" && it.reason === "TransitionCompleted",
    ),
  );
  const answer = await instance.get("/pg/controldata", { operator: true });
  expect(answer.status, answer.body).toBe(200);
  const control = parseControlData((JSON.parse(answer.body) as { data: string }).data);
  expect(shutDownStates).toContain(control.state);
  const partial = await instance.get("/pg/archive/partial", { operator: true, method: "POST" });
  expect(partial).toEqual({ status: 200, body: JSON.stringify({ data: control.redoWalFile }) });
  const token = buildPromotionToken(control, "1.30.0") ?? "";
  await lab.patchStatus({ demotionToken: token, conditions: [] });
  await lab.patchCluster({ metadata: { annotations: { "cnpg.io/fencedInstances": null } } });
  await instance.ready(60_000);
  expect(await instance.status()).toMatchObject({ isPrimary: false });
  return token;
}

function forge(token: string, change: Record<string, string>): string {
  const content = JSON.parse(Buffer.from(token, "base64").toString()) as Record<string, string>;
  return Buffer.from(JSON.stringify({ ...content, ...change })).toString("base64");
}

function archiveOfA() {
  const s3Credentials = { accessKeyId: { name: "keys", key: "id" }, secretAccessKey: { name: "keys", key: "secret" } };
  return { destinationPath: "s3://archive/", endpointURL: s3.endpoint, serverName: "a", s3Credentials };
}

const own = (name: string) => ({ name, connectionParameters: { host: "unused" } });

beforeAll(async () => {
  s3 = await startS3Server();
  const store = await createS3Store(s3.options("archive"));
  await store.checkBucket({ create: true });
  store.close();
  const bootstrap: NonNullable<Cluster["spec"]["bootstrap"]> = { pg_basebackup: { source: "a" } };
  const backup = { barmanObjectStore: archiveOfA() };
  [a, b] = await Promise.all([Lab.start({ spec: { backup } }), Lab.start({ instances: 2, spec: { bootstrap } })]);
  const [toA, toB] = await Promise.all([introduce(a, b, "a"), introduce(b, a, "b")]);
  const replica = (self: string, source: string) => ({ self, primary: "a", source });
  const keys = { id: s3.accessKey, secret: s3.secretKey };
  for (const lab of [a, b]) {
    await lab.apply({ apiVersion: "v1", kind: "Secret", metadata: { name: "keys" }, stringData: keys });
  }
  await a.patchCluster({ spec: { replica: replica("a", "b"), externalClusters: [own("a"), toB] } });
  await b.patchCluster({ spec: { replica: replica("b", "a"), externalClusters: [toA, own("b")] } });
  a1 = await a.instance("lab-1");
  b1 = await b.instance("lab-1");
  b2 = await b.instance("lab-2");
  expect(await a1.job("initdb", initArguments).exit, a1.output.slice(-2000)).toBe(0);
  a.route(a1);
  a1.keep();
  await a1.ready();
  a1.psql("CREATE TABLE of_a AS SELECT generate_series(1, 1000) AS x");
});

afterAll(async () => {
  await Promise.all([a?.stop(), b?.stop()]);
  await s3?.stop();
});

test("the designated primary of a replica cluster follows its source, and its standbys follow it", async () => {
  expect(await b1.job("pgbasebackup", []).exit, b1.output.slice(-3000)).toBe(0);
  expect(existsSync(join(b1.pgData, "standby.signal"))).toBe(true);
  b.route(b1);
  b1.keep();
  await b1.ready();
  await isCurrent(b, "lab-1");
  await follows(b1, "of_a", 1000);
  expect(await b1.status()).toMatchObject({ isPrimary: false, isWalReceiverActive: true });
  expect(a1.psql(standbys)).toBe("lab-1");
  expect(b1.psql("SHOW archive_mode")).toBe("always");
  const override = readFileSync(join(b1.pgData, "override.conf"), "utf8");
  expect(override).toContain(`port=''${a.proxy.port}''`);
  expect(override).not.toContain("primary_slot_name");
  expect((await b.lease()).spec["holderIdentity"] ?? "").toBe("");
  expect(await b2.job("join", ["--parent-node", "127.0.0.1"]).exit, b2.output.slice(-3000)).toBe(0);
  b2.keep();
  await b2.ready();
  await follows(b2, "of_a", 1000);
  await until("lab-2 streams", async () => b1.psql(standbys) === "lab-2");
  expect(b1.psql("SELECT slot_name FROM pg_replication_slots")).toBe("_cnpg_lab_2");
  // In a replica cluster every standby has its own archiver, and only the designated primary's archives.
  expect(await b2.runCommand(["wal-archive", "pg_wal/000000010000000000000001"])).toBe(0);
}, 180_000);

test("minApplyDelay keeps back on every instance what was received, until it is taken away", async () => {
  await b.patchCluster({ spec: { replica: { minApplyDelay: "1h" } } });
  for (const it of [b1, b2]) {
    await until("the delay", async () => it.psql("SHOW recovery_min_apply_delay") === "1h");
  }
  const written = a1.psql("CREATE TABLE late AS SELECT 1 AS x; SELECT pg_current_wal_lsn()");
  for (const it of [b1, b2]) {
    await until(
      `received by ${it.name}`,
      async () => it.psql(`SELECT pg_last_wal_receive_lsn() >= '${written}'`) === "t",
    );
    expect(it.psql("SELECT to_regclass('late') IS NULL")).toBe("t");
  }
  await b.patchCluster({ spec: { replica: { minApplyDelay: null } } });
  await Promise.all([follows(b1, "late", 1), follows(b2, "late", 1)]);
}, 120_000);

test("another instance takes over as the designated primary", async () => {
  await b1.kill();
  await b.patchStatus({ targetPrimary: "lab-2" });
  await isCurrent(b, "lab-2");
  b.route(b2);
  a1.psql("INSERT INTO late VALUES (2)");
  await follows(b2, "late", 2);
  expect(a1.psql(standbys)).toBe("lab-2");
  b1.keep();
  await b1.ready(60_000);
  await until("the former one follows", async () => b2.psql(standbys) === "lab-1");
  await follows(b1, "late", 2);
  expect((await b2.status()).isPrimary).toBe(false);
}, 180_000);

test("a follower that has nothing but the archive goes on by it", async () => {
  const source = { name: "a", barmanObjectStore: archiveOfA() };
  await b.patchCluster({ spec: { externalClusters: [source, own("b")] } });
  await until("nobody streams from the source", async () => a1.psql(standbys) === "");
  expect(b2.psql("SHOW primary_conninfo")).toBe("");
  a1.psql("INSERT INTO late VALUES (3)");
  a1.psql("SELECT pg_switch_wal()");
  await follows(b2, "late", 3);
  await follows(b1, "late", 3);
}, 180_000);

test("a demoted primary cluster stops cleanly, tells where, and gives its lease back", async () => {
  a1.psql("INSERT INTO of_a SELECT generate_series(1001, 2000)");
  tokenOfA = await demote(a, a1, "b");
  expect(existsSync(join(a1.pgData, "standby.signal"))).toBe(true);
  expect((await a.lease()).spec["holderIdentity"]).toBe("");
  expect(() => a1.psql("CREATE TABLE refused (x int)")).toThrow("read-only");
  expect((await status(a)).currentPrimary).toBe("lab-1");
}, 180_000);

test("no token but the right one promotes", async () => {
  const give = (promotionToken: string) => b.patchCluster({ spec: { replica: { primary: "b", promotionToken } } });
  const refused = (log: string) =>
    until(log, async () => {
      const { phase, phaseReason } = await status(b);
      const isTold = phaseReason === "Promotion token content is not correct for current instance";
      return phase === unrecoverable && isTold && b2.output.includes(log);
    });
  await give(forge(tokenOfA, { databaseSystemIdentifier: "1" }));
  await refused("the token is of system 1");
  await give(forge(tokenOfA, { latestCheckpointREDOLocation: "0/1000028" }));
  await refused("past 0/1000028");
  await give(forge(tokenOfA, { latestCheckpointREDOLocation: "FFFF/28" }));
  await until("the phase", async () => (await status(b)).phase === "Promoting to primary cluster");
  await until("the wait", async () => b2.output.includes("waiting for FFFF/28"));
  await give(forge(tokenOfA, { latestCheckpointTimelineID: "7" }));
  await until("the wait", async () => b2.output.includes("waiting for timeline 7"));
  expect((await b2.status()).isPrimary).toBe(false);
  expect(await status(b)).not.toHaveProperty("lastPromotionToken");
  expect((await b.lease()).spec["holderIdentity"] ?? "").toBe("");
}, 120_000);

test("the right token promotes with every row, and the demoted cluster follows", async () => {
  await b.patchCluster({ spec: { replica: { promotionToken: tokenOfA } } });
  await until("promoted", async () => (await status(b)).lastPromotionToken === tokenOfA, 60_000);
  await until("it is a primary", async () => (await b2.status()).isPrimary);
  expect((await b.lease()).spec["holderIdentity"]).toBe("lab-2");
  expect(b2.psql("SELECT count(*) FROM of_a")).toBe("2000");
  b2.psql("CREATE TABLE of_b AS SELECT generate_series(1, 500) AS x");
  await follows(a1, "of_b", 500);
  await follows(b1, "of_b", 500);
  expect(b2.psql("SELECT timeline_id FROM pg_control_checkpoint()")).toBe("2");
}, 180_000);

test("the way back leads over the same steps", async () => {
  b1.release();
  b1.signal("SIGTERM");
  await b1.exit;
  tokenOfB = await demote(b, b2, "a");
  await a.patchCluster({ spec: { replica: { primary: "a", promotionToken: tokenOfB } } });
  await until("promoted back", async () => (await status(a)).lastPromotionToken === tokenOfB, 60_000);
  a1.psql("INSERT INTO of_b VALUES (501)");
  // Its follower has nothing but the archive still, and a timeline to change.
  a1.psql("SELECT pg_switch_wal()");
  await follows(b2, "of_b", 501);
  expect(a1.psql("SELECT count(*) FROM of_a")).toBe("2000");
  expect((await a.lease()).spec["holderIdentity"]).toBe("lab-1");
}, 180_000);
