import { execFileSync } from "node:child_process";
import { chownSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { type FaultyS3, startFaultyS3 } from "../store/faulty-s3.ts";
import { type ArchivedSource, startArchivedSource } from "./archived-source.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

/** What is known of the moment after a row. */
interface Mark {
  time: string;
  lsn: string;
  xid: string;
}

let lab: Lab;
let source: ArchivedSource;
/** The network between the new cluster and the archive. */
let network: FaultyS3;
let backupId: string;
const marks: Mark[] = [];

/** Row `id`, and the moment right after it, which no other row shares. */
async function insert(id: number): Promise<void> {
  const [row] = await source.sql(
    `INSERT INTO public.n (id) VALUES (${id}) RETURNING pg_current_xact_id()::text AS xid`,
  );
  await sleep(30);
  const [now] = await source.sql(
    "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') AS time, pg_current_wal_insert_lsn()::text AS lsn",
  );
  marks[id] = { xid: String(row?.["xid"]), time: String(now?.["time"]), lsn: String(now?.["lsn"]) };
  await sleep(30);
}

beforeAll(async () => {
  source = await startArchivedSource();
  await source.sql("CREATE TABLE public.n (id int)");
  await insert(1);
  backupId = await source.backup();
  for (const id of [2, 3, 4]) await insert(id);
  await source.sql("SELECT pg_create_restore_point('after-four')");
  for (const id of [5, 6]) await insert(id);
  // Told in the log, and by nothing in the backup: what replays it needs as many.
  await source.sql("ALTER SYSTEM SET max_connections = 150", "ALTER SYSTEM SET restore_command = 'false'");
  // As after a failover: the source goes on with a timeline that its backup does not know.
  const { dataDir, user } = source.server;
  writeFileSync(join(dataDir, "recovery.signal"), "");
  chownSync(join(dataDir, "recovery.signal"), user.uid, user.gid);
  await source.server.restart();
  await until("promoted", async () => {
    const [row] = await source.sql("SELECT pg_is_in_recovery() AS recovers");
    return row?.["recovers"] === false;
  });
  await insert(7);
  await source.flush();
  const { accessKey, secretKey } = source.s3;
  network = await startFaultyS3(source.s3.port);
  const secret = { name: "store" };
  lab = await Lab.start({
    instances: 1,
    spec: {
      bootstrap: { recovery: { source: "origin", database: "app", owner: "app" } },
      externalClusters: [
        {
          name: "origin",
          barmanObjectStore: {
            destinationPath: "s3://backups/a",
            endpointURL: network.endpoint,
            s3Credentials: {
              accessKeyId: { ...secret, key: "id" },
              secretAccessKey: { ...secret, key: "key" },
            },
          },
        },
      ],
    },
  });
  const stringData = { id: accessKey, key: secretKey };
  await lab.apply({ apiVersion: "v1", kind: "Secret", metadata: { name: "store" }, stringData });
});

afterAll(async () => {
  await lab?.stop();
  await network?.stop();
  await source?.stop();
});

/** Recovers into an instance of its own and gives the exit code. */
async function recover(instance: LabInstance, recoveryTarget: object | null): Promise<number | string> {
  await lab.patchCluster({ spec: { bootstrap: { recovery: { recoveryTarget } } } });
  const code = await instance.job("full-recovery", []).exit;
  await lab.patchCluster({ spec: { bootstrap: { recovery: { recoveryTarget: null } } } });
  return code;
}

/** What a query answers in the folder as it was left, without a server and its processes. */
function query(instance: LabInstance, sql: string): string {
  const program = join(lab.binDir, "postgres");
  const args = ["--single", "-D", instance.pgData, "-c", "log_min_messages=fatal", "postgres"];
  const output = execFileSync(program, args, { input: `${sql}\n`, ...lab.user, cwd: "/" }).toString();
  return /= "([^"]*)"/.exec(output)?.[1] ?? output;
}

const ids = "SELECT string_agg(id::text, ',' ORDER BY id) AS ids FROM n";

const targets: [string, () => object, string][] = [
  ["a time", () => ({ targetTime: `${marks[3]?.time.replace(" ", "T")}Z` }), "1,2,3"],
  ["a time of another zone", () => ({ targetTime: `${inZone(marks[2]?.time ?? "")}+02:00` }), "1,2"],
  ["a transaction", () => ({ targetXID: marks[4]?.xid, backupID: backupId }), "1,2,3,4"],
  ["a transaction, exclusive", () => ({ targetXID: marks[4]?.xid, exclusive: true, backupID: backupId }), "1,2,3"],
  ["a position", () => ({ targetLSN: marks[5]?.lsn }), "1,2,3,4,5"],
  ["a name", () => ({ targetName: "after-four", targetTLI: "1", backupID: backupId }), "1,2,3,4"],
  ["the end of the backup", () => ({ targetImmediate: true, backupID: backupId }), "1"],
];

function inZone(time: string): string {
  const shifted = new Date(Date.parse(`${time.slice(0, 19).replace(" ", "T")}Z`) + 2 * 3_600_000).toISOString();
  return `${shifted.slice(0, 19)}${time.slice(19)}`;
}

test.each(targets)("recovers exactly to %s", async (name, target, expected) => {
  const instance = await lab.instance(`lab-${10 + targets.findIndex(([it]) => it === name)}`);
  expect(await recover(instance, target()), instance.output.slice(-4000)).toBe(0);
  expect(query(instance, ids)).toBe(expected);
  expect(instance.control()).toMatch(/Latest checkpoint's TimeLineID:\s+3\n/);
});

const higherLimits = "Recovery needs higher limits and goes on with them";

test("without a target takes all there is; the instance then serves its application's owner", async () => {
  const instance = await lab.instance("lab-1");
  expect(await recover(instance, null), instance.output.slice(-4000)).toBe(0);
  expect(instance.output).toContain(higherLimits);
  expect(instance.volumeEntries()).toEqual(["pgdata"]);
  lab.route(instance);
  instance.run();
  await instance.ready();
  expect(instance.psql(ids)).toBe("1,2,3,4,5,6,7");
  expect(instance.psql("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'app'")).toBe("app");
  expect(instance.psql("SHOW ssl")).toBe("on");
  expect(instance.psql("SHOW restore_command")).toContain("wal-restore");
});

test("an archive that is not empty is recovered into only when the user says so; sources have a server name of their own", async () => {
  const [refused, instance] = [await lab.instance("lab-20"), await lab.instance("lab-21")];
  const { externalClusters = [] } = (await lab.cluster()).spec;
  const own = { ...externalClusters[0]?.barmanObjectStore, serverName: "origin" };
  const elsewhere = [{ name: "elsewhere", barmanObjectStore: own }];
  await lab.patchCluster({
    spec: {
      externalClusters: elsewhere,
      bootstrap: { recovery: { source: "elsewhere" } },
      backup: { barmanObjectStore: own },
      postgresql: { parameters: { max_connections: "150" } },
    },
  });
  expect(await recover(refused, null)).toBe(1);
  expect(refused.output).toContain("Expected empty archive");
  await lab.patchCluster({ metadata: { annotations: { "cnpg.io/skipEmptyWalArchiveCheck": "enabled" } } });
  expect(await recover(instance, null), instance.output.slice(-4000)).toBe(0);
  expect(instance.output).not.toContain(higherLimits);
  expect(query(instance, ids)).toBe("1,2,3,4,5,6,7");
  await lab.patchCluster({
    metadata: { annotations: { "cnpg.io/skipEmptyWalArchiveCheck": null } },
    spec: {
      externalClusters,
      bootstrap: { recovery: { source: "origin" } },
      backup: null,
      postgresql: { parameters: { max_connections: null } },
    },
  });
}, 120_000);

test("says why a target cannot be reached, and a next attempt fills no disk", async () => {
  const instance = await lab.instance("lab-2");
  const impossible = { targetTime: "2999-01-01T00:00:00Z" };
  expect(await recover(instance, impossible)).toBe(1);
  expect(instance.output).toContain("the archive ends before the recovery target");
  expect(await recover(instance, { ...impossible, backupID: "20000101T000000" })).toBe(1);
  expect(instance.output).toContain("no backup found with ID 20000101T000000");
  expect(instance.volumeEntries().filter((name) => name.startsWith("pgdata_"))).toEqual([]);
});

test("an attempt that is killed at any point is in no way of the next one", async () => {
  const instance = await lab.instance("lab-6");
  for (const afterMs of [600, 1_500, 2_500, 4_000]) {
    const job = instance.job("full-recovery", []);
    await sleep(afterMs);
    await job.kill();
  }
  expect(await recover(instance, null), instance.output.slice(-4000)).toBe(0);
  expect(query(instance, ids)).toBe("1,2,3,4,5,6,7");
});

test("a network that is cut in mid-recovery is waited for: the base is read on, and recovery does not end early", async () => {
  const instance = await lab.instance("lab-3");
  let halves = 0;
  let refused = 0;
  network.fault = ({ method, url = "" }, outgoing) => {
    // Of the base archive only halves come for a while; of the WAL nothing, once recovery has begun to ask for it.
    if (method === "GET" && url.includes("/base/") && url.includes(".tar") && halves < 3) {
      halves += 1;
      return "passHalf";
    }
    if (halves < 3 || !url.includes("wals") || refused < 0) return "pass";
    refused += 1;
    outgoing.destroy();
    return "answered";
  };
  const job = instance.job("full-recovery", []);
  let code: number | string | undefined;
  void job.exit.then((it) => {
    code = it;
  });
  await until("WAL was asked for in vain, again and again", async () => refused >= 6, 60_000);
  expect(code, instance.output.slice(-2000)).toBeUndefined();
  refused = -1;
  expect(await job.exit, instance.output.slice(-4000)).toBe(0);
  network.fault = () => "pass";
  expect(query(instance, ids)).toBe("1,2,3,4,5,6,7");
  expect(instance.control()).toMatch(/Latest checkpoint's TimeLineID:\s+3\n/);
}, 240_000);

/** What a snapshot of a volume is to its new owner. */
function copyFolder(from: string, to: string): void {
  execFileSync("cp", ["-a", from, to]);
  execFileSync("chown", ["-R", `${lab.user.uid}:${lab.user.gid}`, to]);
}

/** Gives instances a volume that was copied while the source ran; tells the label, base64, that recovery needs. */
async function copyRunningSource(...instances: LabInstance[]): Promise<string> {
  const { socketDir: host, port, dataDir } = source.server;
  const origin = { host, port, user: "postgres", database: "postgres", applicationName: "test" };
  const session = await createSqlConnector().connect(origin);
  await session.query("SELECT pg_backup_start('snapshot', true)");
  for (const instance of instances) copyFolder(dataDir, instance.pgData);
  const [stopped] = await session.query("SELECT labelfile FROM pg_backup_stop()");
  await session.close();
  return Buffer.from(String(stopped?.["labelfile"])).toString("base64");
}

test("a snapshot that was taken while the server ran recovers by its label and the archive", async () => {
  const [instance, killed] = [await lab.instance("lab-7"), await lab.instance("lab-9")];
  const label = await copyRunningSource(instance, killed);
  await source.sql("CREATE TABLE public.after_snapshot AS SELECT 4711 AS ids");
  await source.flush();
  const { exit } = instance.job("snapshot-recovery", [`--backuplabel=${label}`]);
  expect(await exit, instance.output.slice(-4000)).toBe(0);
  expect(query(instance, ids)).toBe("1,2,3,4,5,6,7");
  expect(query(instance, "SELECT ids FROM after_snapshot")).toBe("4711");
  expect(instance.control()).toMatch(/Latest checkpoint's TimeLineID:\s+3\n/);
  expect(existsSync(join(instance.pgData, "postmaster.pid"))).toBe(false);

  // The same for a Job whose pod is killed, wherever that finds it, and which the kubelet starts again.
  const points = ["Removing a file", "Generated recovery configuration", "redo starts", "selected new timeline"];
  for (const point of [...points, "archive recovery complete", ...points]) {
    const job = killed.job("snapshot-recovery", [`--backuplabel=${label}`]);
    const start = killed.output.length;
    await until(point, async () => killed.output.slice(start).includes(point), 60_000);
    await job.kill();
  }
  const last = killed.job("snapshot-recovery", [`--backuplabel=${label}`]);
  expect(await last.exit, killed.output.slice(-4000)).toBe(0);
  expect(query(killed, ids)).toBe("1,2,3,4,5,6,7");
  expect(query(killed, "SELECT ids FROM after_snapshot")).toBe("4711");
  expect(killed.control()).toContain("shut down");
}, 240_000);

test("a snapshot of an instance's volume becomes a standby of its cluster", async () => {
  const [primary, instance] = [await lab.instance("lab-1"), await lab.instance("lab-8")];
  primary.signal("SIGTERM");
  expect(await primary.exit).toBe(0);
  copyFolder(primary.pgData, instance.pgData);
  primary.run();
  await primary.ready(60_000);
  await lab.patchStatus({ instanceNames: ["lab-1", "lab-8"] });
  expect(await instance.job("snapshot-recovery", ["--immediate"]).exit, instance.output.slice(-4000)).toBe(0);
  expect(existsSync(join(instance.pgData, "standby.signal"))).toBe(true);
  instance.run();
  await instance.ready(60_000);
  const streams = "SELECT application_name FROM pg_stat_replication WHERE state = 'streaming'";
  await until("it streams", async () => primary.psql(streams) === "lab-8", 60_000);
  expect((await instance.status()).isPrimary).toBe(false);
}, 240_000);

test("recovers from a Backup object alone", async () => {
  const s3Credentials = { accessKeyId: { name: "store", key: "id" }, secretAccessKey: { name: "store", key: "key" } };
  const place = {
    destinationPath: "s3://backups/a",
    serverName: "origin",
    endpointURL: network.endpoint,
    s3Credentials,
  };
  const spec = { cluster: { name: "long-gone" }, method: "barmanObjectStore" };
  await lab.apply({ apiVersion: "postgresql.cnpg.io/v1", kind: "Backup", metadata: { name: "kept" }, spec });
  const recover = async (status: object, instance: LabInstance) => {
    const patch = JSON.stringify({ status });
    await lab.plane.kubectl(["patch", "backup", "kept", "--subresource=status", "--type=merge", "-p", patch]);
    return instance.job("full-recovery", []).exit;
  };
  const recovery = { source: null, backup: { name: "kept" } };
  await lab.patchCluster({ spec: { externalClusters: null, bootstrap: { recovery } } });
  const [unfit, instance] = [await lab.instance("lab-4"), await lab.instance("lab-5")];
  expect(await recover({ phase: "completed", ...place }, unfit)).toBe(1);
  expect(unfit.output).toContain("status of Backup kept has no backupId: it is no completed backup of an object store");
  expect(await recover({ backupId }, instance), instance.output.slice(-4000)).toBe(0);
  expect(query(instance, ids)).toBe("1,2,3,4,5,6,7");
}, 240_000);
