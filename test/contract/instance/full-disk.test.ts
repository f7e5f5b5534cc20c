import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readlinkSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Lab, type LabInstance, until } from "./lab.ts";

const segmentBytes = 16 * 1024 * 1024;
let lab: Lab;
let one: LabInstance;
let walVolume: string;

beforeAll(async () => {
  const parameters = { wal_keep_size: "0", min_wal_size: "32MB", max_wal_size: "48MB" };
  lab = await Lab.start({ spec: { stopDelay: 60, smartShutdownTimeout: 3, postgresql: { parameters } } });
  one = await lab.instance("lab-1");
  walVolume = join(lab.root, "lab-1", "wal");
  mkdirSync(walVolume);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=160m,mode=700", "none", walVolume]);
  lab.giveAway(walVolume);
  const args = ["--initdb-flags=--encoding=UTF8 --locale=C", "--app-db-name=app", "--app-user=app"];
  expect(await one.job("initdb", args).exit, one.output.slice(-2000)).toBe(0);
});

afterAll(async () => {
  await one?.remove();
  if (walVolume) execFileSync("umount", [walVolume]);
  await lab?.stop();
});

function run(): void {
  one.run({ environment: { CNPG_TS_WAL_VOLUME: walVolume } });
}

/** Leaves only so many bytes on the WAL volume. */
function fill(leave: number): void {
  const { bavail, bsize } = statfsSync(walVolume);
  writeFileSync(join(walVolume, "filler"), Buffer.alloc(Math.max(0, bavail * bsize - leave)));
}

function empty(): void {
  rmSync(join(walVolume, "filler"));
}

/** What a condition is held against that must stay true: nothing tells when it would stop being so. */
async function staysTrue(forMs: number, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + forMs; Date.now() < end; await sleep(200)) expect(await holds()).toBe(true);
}

test("with a WAL volume that is new, pg_wal is moved there before the first start", async () => {
  run();
  await one.ready();
  expect(readlinkSync(join(one.pgData, "pg_wal"))).toBe(join(walVolume, "pg_wal"));
  expect(one.psql("CREATE TABLE written AS SELECT 1 AS x; SELECT count(*) FROM written")).toBe("1");
});

test("SIGTERM lets sessions go on for the smart part, and ends them by the fast one", async () => {
  const session = one.session("SELECT pg_sleep(600)");
  const ended = once(session, "exit");
  const busy = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'";
  await until("the session runs", async () => one.psql(busy) === "1");
  one.signal("SIGTERM");
  await until("no new session", async () => one.output.includes('"mode":"smart"'));
  expect(session.exitCode).toBeNull();
  await ended;
  expect(await one.exit).toBe(0);
  const modes = [...one.output.matchAll(/Shutting down instance.*"mode":"(\w+)","limitMs":(\d+)/g)];
  expect(modes.map(([, mode]) => mode)).toEqual(["smart", "fast"]);
  // What the smart part does not use is the fast one's, less ten seconds for the rest.
  expect(modes.map(([, , limit]) => Number(limit))).toEqual([3_000, 47_000]);
  expect(one.control()).toMatch(/Database cluster state: +shut down\n/);
});

test("room for one segment is not enough to start: the container ends with 4, and starts once there is more", async () => {
  fill(segmentBytes + segmentBytes / 2);
  run();
  expect(await one.exit).toBe(4);
  expect(one.output).toContain("Not enough disk space for the next WAL segments; enlarge the WAL volume");
  expect((await lab.lease()).spec["holderIdentity"] ?? "").toBe("");
  empty();
  run();
  await one.ready();
  expect(one.psql("SELECT count(*) FROM written")).toBe("1");
});

test("a WAL volume that fills up under writes ends the container with 4, and nothing that was committed is lost", async () => {
  // Otherwise it is a race: checkpoints make room as long as they keep up, and the table grows meanwhile. Reading it for the first
  // time writes its pages to the WAL once more (hint bits), and a large one fills the volume again.
  one.psql("SELECT pg_create_physical_replication_slot('keeps_wal', true)");
  fill(2 * segmentBytes);
  const write = "INSERT INTO written SELECT x FROM generate_series(1, 50000) AS x";
  const isWritten = async () => {
    await once(one.session(`${write}; SELECT pg_switch_wal()`), "exit");
    return !one.running;
  };
  await until("it is full", isWritten, 120_000);
  expect(await one.exit).toBe(4);
  empty();
  run();
  await one.ready();
  one.psql("SELECT pg_drop_replication_slot('keeps_wal')");
  expect(one.psql("SELECT count(*) % 50000 FROM written")).toBe("1");
}, 180_000);

test("a container that starts while the API server is away waits for it, and then goes on by itself", async () => {
  one.signal("SIGTERM");
  expect(await one.exit).toBe(0);
  await lab.plane.stopApiServer("kill");
  try {
    run();
    await until("it answers", async () => (await one.get("/healthz")).status === 200);
    // Nobody could tell it whether another instance has become primary meanwhile.
    await staysTrue(3_000, () => one.postgresProcesses().length === 0 && one.running);
  } finally {
    await lab.plane.startApiServer();
  }
  await one.ready(90_000);
  expect(one.psql("SELECT count(*) > 0 FROM written")).toBe("t");
}, 180_000);

test("PostgreSQL goes on when the Cluster is deleted, until its pod is ended", async () => {
  const before = one.psql("SELECT pg_postmaster_start_time()");
  await lab.plane.kubectl(["delete", "cluster", "lab", "-n", "default", "--wait=true"]);
  await staysTrue(5_000, async () => one.psql("SELECT pg_postmaster_start_time()") === before);
  expect((await one.status()).isPrimary).toBe(true);
  one.signal("SIGTERM");
  expect(await one.exit).toBe(0);
});
