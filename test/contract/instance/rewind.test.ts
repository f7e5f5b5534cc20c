import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { listAll } from "../../../src/ports/object-store.ts";
import { createS3Store } from "../../../src/store/s3-store.ts";
import { type S3Server, startS3Server } from "../../support/s3-server.ts";
import { answerWith, type FaultyS3, startFaultyS3 } from "../store/faulty-s3.ts";
import { bootPrimary, bootStandby } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

let s3: S3Server;
/** The way of all instances to the archive. */
let way: FaultyS3;
let lab: Lab;
let one: LabInstance;
let two: LabInstance;

const record = (instance: LabInstance) => join(instance.volume, ".cnpg-ts.rewinding");

/**
 * Stands before the real pg_rewind. `cut`: it ends in the middle, after it replaced what only a whole run makes good. `fail`: it
 * fails. `bare`: archived WAL is gone from pg_wal, as on a server that has recycled it.
 */
const shim = (real: string, folder: string) => `#!/bin/sh
mode=$(cat ${folder}/mode)
case "$mode" in
cut) echo hold > ${folder}/mode; rm "$PGDATA/base/$(ls "$PGDATA/base" | sort -n | tail -1)/pg_filenode.map"; kill -9 $$ ;;
fail) echo "pg_rewind: error: for the test" >&2; exit 1 ;;
bare)
  needed=$(pg_controldata -D "$PGDATA" | sed -n "s/.*REDO WAL file: *//p")
  for done in "$PGDATA"/pg_wal/archive_status/0*.done; do
    name=$(basename "$done" .done)
    [ "$name" = "$needed" ] && break
    [ -f "$PGDATA/pg_wal/$name" ] && rm "$PGDATA/pg_wal/$name" && echo "$name" >> ${folder}/taken
  done ;;
esac
while [ "$(cat ${folder}/mode)" = hold ]; do sleep 0.1; done
exec ${real} "$@"
`;

function setMode(instance: LabInstance, mode: "" | "cut" | "fail" | "bare"): void {
  writeFileSync(join(instance.scratch, "shim", "mode"), mode, { mode: 0o666 });
}

function keep(instance: LabInstance): void {
  const folder = join(instance.scratch, "shim");
  if (!existsSync(folder)) {
    mkdirSync(folder, { mode: 0o777 });
    writeFileSync(join(folder, "pg_rewind"), shim(join(lab.binDir, "pg_rewind"), folder), { mode: 0o755 });
    setMode(instance, "");
    // The shim writes there as the user that PostgreSQL runs as.
    lab.giveAway(folder, join(folder, "mode"));
  }
  instance.keep({ environment: { PATH: `${folder}:${lab.binDir}:/usr/bin:/bin` } });
}

const currentPrimary = (name: string) =>
  until(`${name} is current primary`, async () => (await lab.cluster()).status?.currentPrimary === name, 60_000);

const follows = (primary: LabInstance) =>
  until(
    "the old primary follows",
    async () => primary.psql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") === "1",
    90_000,
  );

/** Kills the primary after it wrote what nobody else has, and lets the other one take over. */
async function failOver(from: LabInstance, to: LabInstance, table: string): Promise<void> {
  from.psql("CHECKPOINT");
  const name = from.psql("SELECT pg_walfile_name(pg_switch_wal())");
  await until("archived", async () => from.psql("SELECT last_archived_wal FROM pg_stat_archiver") >= name, 60_000);
  await until("replayed", async () => {
    const sent = "SELECT bool_and(replay_lsn = pg_current_wal_lsn()) FROM pg_stat_replication";
    return from.psql(sent) === "t";
  });
  lab.proxy.cut();
  from.psql(`CREATE TABLE ${table} AS SELECT 1 AS x`);
  // Its own recovery needs no WAL from before this; the rewind does.
  from.psql("CHECKPOINT");
  await from.kill();
  await lab.patchStatus({ targetPrimary: "pending" });
  await lab.patchStatus({ targetPrimary: to.name });
  await currentPrimary(to.name);
  lab.route(to);
  to.psql(`CREATE TABLE after_${table} (x int)`);
}

beforeAll(async () => {
  s3 = await startS3Server();
  const store = await createS3Store(s3.options("archive"));
  await store.checkBucket({ create: true });
  store.close();
  way = await startFaultyS3(s3.port);
  const s3Credentials = {
    accessKeyId: { name: "keys", key: "id" },
    secretAccessKey: { name: "keys", key: "secret" },
  };
  const barmanObjectStore = { destinationPath: "s3://archive/", endpointURL: way.endpoint, s3Credentials };
  lab = await Lab.start({ instances: 2, spec: { backup: { barmanObjectStore } } });
  await lab.apply({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "keys" },
    stringData: { id: s3.accessKey, secret: s3.secretKey },
  });
  one = await lab.instance("lab-1");
  two = await lab.instance("lab-2");
  await bootPrimary(lab, one, { start: keep });
  await bootStandby(two, keep);
  await follows(one);
  one.psql("CREATE TABLE kept AS SELECT 1 AS x");
});

afterAll(async () => {
  await lab?.stop();
  await way?.stop();
  await s3?.stop();
});

test("a folder whose rewind was cut off is no server's, and is rewound from the beginning", async () => {
  const autoConf = join(one.pgData, "postgresql.auto.conf");
  await failOver(one, two, "lost");
  setMode(one, "cut");
  keep(one);
  await until("the rewind was cut off", async () => one.output.includes("pg_rewind failed (SIGKILL)"), 60_000);
  await until("the next one is at work", async () => readFileSync(record(one), "utf8") === "attempts=2\n");
  await one.kill();
  // Its control file looks as before, and nothing but the record tells what happened.
  expect(one.control()).toMatch(/Database cluster state: +in production/);
  await lab.patchStatus({ targetPrimary: "lab-1" });
  await until("the other one has stepped down", async () => two.postgresProcesses().length === 0, 60_000);
  keep(one);
  await until(
    "it does not start",
    async () => one.output.includes("pg_rewind was cut off in this data folder"),
    60_000,
  );
  expect(one.postgresProcesses()).toEqual([]);
  setMode(one, "bare");
  // Nothing in the folder tells pg_rewind how to get WAL, and one of the files that it copies over may not be written.
  writeFileSync(join(one.pgData, "override.conf"), "");
  chmodSync(autoConf, 0o400);
  await lab.patchStatus({ targetPrimary: "lab-2" });
  await two.ready(60_000);
  await follows(two);
  await one.ready(60_000);
  expect(one.psql("SELECT to_regclass('lost') IS NULL, to_regclass('kept') IS NOT NULL")).toBe("t|t");
  // The database whose map the cut-off rewind had taken.
  expect(one.psql("SELECT count(*) > 0 FROM pg_class", "app")).toBe("t");
  expect(existsSync(record(one))).toBe(false);
  await until("settings are protected again", async () => (statSync(autoConf).mode & 0o777) === 0o400);
  // What was gone from pg_wal came from the archive.
  expect(readFileSync(join(one.scratch, "shim", "taken"), "utf8")).toMatch(/^0000000100000000/);
  expect(one.output.split("\n").filter((line) => line.includes("This instance is cloned anew"))).toEqual([]);
}, 240_000);

test("an old primary that can't be rewound is cloned anew after three attempts", async () => {
  await failOver(two, one, "lost_too");
  setMode(two, "fail");
  keep(two);
  await follows(one);
  await two.ready(60_000);
  expect(two.output).toContain("pg_rewind has failed 3 times");
  expect(two.output.match(/Starting up pg_rewind/g)).toHaveLength(3);
  expect(two.psql("SELECT to_regclass('lost_too') IS NULL, to_regclass('kept') IS NOT NULL")).toBe("t|t");
  expect(
    two.volumeEntries().filter((name) => !/^(pgdata|unarchived_\w+|owner\.json|\.cnpg-ts\.(lock|probe))$/.test(name)),
  ).toEqual([]);
}, 180_000);

test("a former primary archives what its successor shares and nobody else has, before it follows", async () => {
  const names = async () => {
    const store = await createS3Store(s3.options("archive"));
    const { objects } = await listAll(store, "lab/wals/");
    store.close();
    return objects.map(({ key }) => key.slice(key.lastIndexOf("/") + 1));
  };
  way.fault = (incoming, outgoing) =>
    incoming.method === "PUT" ? answerWith(503, "SlowDown")(incoming, outgoing) : "pass";
  const shared = ["first", "second"].map((table) => {
    one.psql(`CREATE TABLE ${table} AS SELECT 1 AS x`);
    return one.psql("SELECT pg_walfile_name(pg_switch_wal())");
  });
  one.psql("CREATE TABLE common AS SELECT 1 AS x");
  await until("replayed", async () => {
    const sent = "SELECT bool_and(replay_lsn = pg_current_wal_lsn()) FROM pg_stat_replication";
    return one.psql(sent) === "t";
  });
  lab.proxy.cut();
  one.psql("CREATE TABLE lost_at_last AS SELECT 1 AS x");
  const own = one.psql("SELECT pg_walfile_name(pg_switch_wal())");
  await one.kill();
  await lab.patchStatus({ targetPrimary: "pending" });
  await lab.patchStatus({ targetPrimary: two.name });
  await currentPrimary(two.name);
  expect((await names()).filter((name) => shared.some((it) => name.startsWith(it)))).toEqual([]);
  way.fault = () => "pass";
  lab.route(two);
  setMode(one, "");
  keep(one);
  await follows(two);
  await one.ready(60_000);
  const archived = await names();
  for (const name of shared) expect(archived).toContain(name);
  const [drained, rewound] = ["Archived WAL of the former primary", "Starting up pg_rewind"];
  expect(one.output).toContain(drained);
  expect(one.output.lastIndexOf(drained)).toBeLessThan(one.output.lastIndexOf(rewound));
  // What it wrote alone is on nobody's timeline: it is kept beside the data, and not in the archive.
  expect(archived).not.toContain(own);
  const kept = one.volumeEntries().filter((name) => name.startsWith("unarchived_"));
  expect(kept.flatMap((folder) => readdirSync(join(one.volume, folder)))).toContain(own);
  expect(one.psql("SELECT to_regclass('common') IS NOT NULL, to_regclass('lost_at_last') IS NULL")).toBe("t|t");
}, 240_000);

test("a history of a timeline that the cluster does not know yet is for its primary alone", async () => {
  const store = await createS3Store(s3.options("archive"));
  await store.put("lab/wals/0000000A.history", [Buffer.from("1\t0/1000000\tfor the test\n")]);
  store.close();
  await lab.patchStatus({ timelineID: 9 });
  const ask = (instance: LabInstance) => instance.runCommand(["wal-restore", "0000000A.history", "future"]);
  for (const { ports } of [one, two]) {
    await until("it has read that", async () => {
      const cluster = (await (await fetch(`http://127.0.0.1:${ports.local}/cache/cluster`)).json()) as Cluster;
      return cluster.status?.timelineID === 9;
    });
  }
  expect([await ask(one), await ask(two)]).toEqual([1, 0]);
  expect(existsSync(join(two.pgData, "future"))).toBe(true);
  expect(existsSync(join(one.pgData, "future"))).toBe(false);
});
