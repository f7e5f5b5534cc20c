import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;
let two: LabInstance;
let three: LabInstance;

const initArguments = ["--initdb-flags=--encoding=UTF8 --locale=C -k", "--app-db-name=app", "--app-user=app"];
const streaming = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
const slots =
  "SELECT string_agg(slot_name, ',' ORDER BY slot_name) FROM pg_replication_slots WHERE slot_type = 'physical'";

beforeAll(async () => {
  lab = await Lab.start({ instances: 3 });
  one = await lab.instance("lab-1");
  two = await lab.instance("lab-2");
  three = await lab.instance("lab-3");
});

afterAll(() => lab?.stop());

async function currentPrimary(name: string): Promise<void> {
  await until(`${name} is current primary`, async () => (await lab.cluster()).status?.currentPrimary === name);
}

/** Writes through the Service's stand-in until one succeeds; gives the time that took. */
async function writesBack(instance: LabInstance, table: string): Promise<number> {
  const started = Date.now();
  await until("writes", async () => instance.psql(`CREATE TABLE IF NOT EXISTS ${table} (x int); SELECT 1`) === "1");
  return Date.now() - started;
}

test("two standbys join side by side and stream through their own slots", async () => {
  expect(await one.job("initdb", initArguments).exit, one.output.slice(-2000)).toBe(0);
  lab.route(one);
  const joins = [two, three].map((instance) => instance.job("join", ["--parent-node", "127.0.0.1"]));
  one.keep();
  await one.ready();
  expect(await Promise.all(joins.map((join) => join.exit)), two.output.slice(-3000)).toEqual([0, 0]);
  expect(existsSync(join(two.pgData, "standby.signal"))).toBe(true);
  two.keep();
  three.keep();
  await Promise.all([two.ready(), three.ready()]);
  await until("both stream", async () => one.psql(streaming) === "2");
  expect(one.psql(slots)).toBe("_cnpg_lab_2,_cnpg_lab_3");
  expect(readFileSync(join(two.pgData, "override.conf"), "utf8")).toContain("primary_slot_name = '_cnpg_lab_2'");
  const status = await two.status();
  expect(status).toMatchObject({ isPrimary: false, isWalReceiverActive: true, timeLineID: 1 });
  expect((await one.status()).replicationInfo?.map((row) => row.applicationName)).toEqual(["lab-2", "lab-3"]);
  // Whose WAL it is decides who archives it, whatever PostgreSQL asks.
  const archive = ["wal-archive", "pg_wal/000000010000000000000001"];
  expect([await one.runCommand(archive), await two.runCommand(archive)]).toEqual([0, 1]);
});

test("a standby copies the slots of the others", async () => {
  await until("copied slot", async () => two.psql(slots) === "_cnpg_lab_3", 60_000);
});

test("a switchover moves the primary, and the old one follows in its container without a rewind", async () => {
  const starts = () => one.output.split("Starting the instance manager").length;
  const startsBefore = starts();
  one.psql("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS x");
  const asked = Date.now();
  await lab.patchStatus({ targetPrimary: "lab-2" });
  await currentPrimary("lab-2");
  lab.route(two);
  const gapMs = Date.now() - asked;
  // Handed over, not waited out: the lease of a dead holder lasts 15 s. The bench measures how fast it is.
  expect(gapMs).toBeLessThan(10_000);
  expect(two.psql("SELECT count(*) FROM kept")).toBe("1000");
  await one.ready(60_000);
  await until("old primary follows", async () => two.psql(streaming) === "2", 60_000);
  expect((await one.status()).isPrimary).toBe(false);
  expect(one.output).toContain("This old primary can follow as it is");
  expect(one.output).not.toContain("Starting up pg_rewind");
  expect((await lab.lease()).spec["holderIdentity"]).toBe("lab-2");
  expect(starts()).toBe(startsBefore);
});

test("a primary that is named again while it steps down goes on as the primary", async () => {
  const tenure = async () => Number((await lab.lease()).spec["leaseTransitions"] ?? 0);
  const before = await tenure();
  await lab.patchStatus({ targetPrimary: "pending" });
  await until("it steps down", async () => two.output.includes("Stepping down as the primary"), 60_000);
  await lab.patchStatus({ targetPrimary: "lab-2" });
  await until("it took the Lease anew", async () => (await tenure()) > before, 60_000);
  await two.ready(60_000);
  await until("both follow", async () => two.psql(streaming) === "2", 60_000);
  expect(two.psql("SELECT pg_is_in_recovery()")).toBe("f");
  expect(two.output).not.toContain("The instance manager ends");
}, 120_000);

test("a killed primary is replaced once its lease has run out, and is rewound when it comes back", async () => {
  two.release();
  // What only the old primary has must not survive.
  lab.proxy.cut();
  two.psql("CREATE TABLE lost AS SELECT 1 AS x");
  await two.kill();
  await lab.patchStatus({ targetPrimary: "pending" });
  await lab.patchStatus({ targetPrimary: "lab-3" });
  await currentPrimary("lab-3");
  lab.route(three);
  await writesBack(three, "after_failover");
  await until("the other standby follows", async () => three.psql(streaming) === "1", 60_000);
  two.keep();
  await two.ready(60_000);
  await until("the old primary follows", async () => three.psql(streaming) === "2", 60_000);
  expect(two.psql("SELECT count(*) FROM kept")).toBe("1000");
  expect(two.psql("SELECT to_regclass('lost') IS NULL")).toBe("t");
  expect(two.output).toContain("This old primary is rewound");
}, 120_000);

test("a deleted primary hands over at once, even with a session open", async () => {
  three.release();
  const session = three.session("SELECT pg_sleep(600)");
  await until(
    "the session runs",
    async () =>
      three.psql(
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(6%' AND pid <> pg_backend_pid()",
      ) === "1",
  );
  const started = Date.now();
  three.signal("SIGTERM");
  await lab.patchStatus({ targetPrimary: "pending" });
  await lab.patchStatus({ targetPrimary: "lab-1" });
  await currentPrimary("lab-1");
  const gapMs = Date.now() - started;
  lab.route(one);
  session.kill();
  expect(await three.exit).toBe(0);
  expect(gapMs).toBeLessThan(10_000);
  expect(one.psql("SELECT count(*) FROM kept")).toBe("1000");
  three.keep();
  await three.ready(60_000);
  await until("all follow", async () => one.psql(streaming) === "2", 60_000);
});

test("a standby whose receiver a frozen former primary keeps waiting turns to the new one", async () => {
  // A frozen server's kernel still takes connections; nobody ever answers on them.
  const frozen = createServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
  await once(frozen, "listening");
  one.release();
  lab.proxy.cut();
  lab.proxy.target = (frozen.address() as AddressInfo).port;
  await one.kill();
  const waiting = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walreceiver'";
  await until("it waits for the frozen one", async () => three.psql(waiting) === "1", 60_000);
  await lab.patchStatus({ targetPrimary: "pending" });
  await lab.patchStatus({ targetPrimary: "lab-2" });
  await currentPrimary("lab-2");
  lab.route(two);
  await until("it streams from the new one", async () => two.psql(streaming) === "1", 60_000);
  frozen.close();
  one.keep();
  await one.ready(60_000);
}, 120_000);
