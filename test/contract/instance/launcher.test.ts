import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseVolumeFailure } from "../../../src/api/volume-failure.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;

beforeAll(async () => {
  lab = await Lab.start({ spec: { postgresql: { parameters: { log_statement: "all", archive_timeout: "1s" } } } });
  one = await lab.instance("lab-1");
  const exit = await one.job("initdb", [
    "--initdb-flags=--encoding=UTF8 --locale=C",
    "--app-db-name=app",
    "--app-user=app",
  ]).exit;
  expect(exit, one.output.slice(-2000)).toBe(0);
});

afterAll(() => lab?.stop());

test("under the launcher the instance comes up and archives", async () => {
  one.run({ launcher: true });
  await one.ready();
  await until("archived", async () => {
    one.psql("CREATE TABLE IF NOT EXISTS t (x int); INSERT INTO t VALUES (1)");
    return Number(one.psql("SELECT archived_count FROM pg_stat_archiver")) > 0;
  });
  expect(one.psql("SELECT failed_count FROM pg_stat_archiver")).toBe("0");
});

test("a killed runtime comes back and PostgreSQL never noticed", async () => {
  const before = await one.status();
  const postmaster = one.psql("SELECT pg_postmaster_start_time()");
  const session = one.session("SELECT pg_sleep(30), 'kept'");
  one.psql("CREATE TABLE load (x int)");
  const end = Date.now() + 12_000;
  let written = 0;
  let kills = 0;
  let longestMs = 0;
  while (Date.now() < end) {
    if (written % 100 === 50 && kills < 3) {
      one.killRuntime();
      kills += 1;
    }
    const started = Date.now();
    one.psql(`INSERT INTO load VALUES (${written})`);
    longestMs = Math.max(longestMs, Date.now() - started);
    written += 1;
  }
  expect(kills).toBeGreaterThan(0);
  expect(one.psql("SELECT count(*) FROM load")).toBe(String(written));
  expect(one.psql("SELECT pg_postmaster_start_time()")).toBe(postmaster);
  expect(longestMs).toBeLessThan(5_000);
  const after = await until("status", async () => one.status());
  expect(after.sessionID).not.toBe(before.sessionID);
  expect(one.output).toContain("Adopted the running postmaster");
  expect(session.exitCode).toBeNull();
  session.kill();
  // The statements that ran while no runtime was up are in the log too.
  await sleep(1_000);
  const logged = new Set([...one.output.matchAll(/INSERT INTO load VALUES \((\d+)\)/g)].map((match) => match[1]));
  expect(logged.size).toBeGreaterThan(written * 0.95);
}, 120_000);

test("the lease stays with the pod across runtimes", async () => {
  const lease = await lab.lease();
  expect(lease.spec["holderIdentity"]).toBe("lab-1");
  expect(lease.spec["leaseTransitions"]).toBe(1);
});

test("a postmaster that dies while no runtime is up is started again", async () => {
  one.killRuntime();
  one.killPostgres();
  await one.ready(60_000);
  expect(one.psql("SELECT count(*) > 0 FROM load")).toBe("t");
});

test("a volume that hangs while PostgreSQL is down costs the instance the lease, until it takes writes again", async () => {
  const holder = async () => (await lab.lease()).spec["holderIdentity"] ?? "";
  const fence = (instances: string | null) =>
    lab.patchCluster({
      metadata: { annotations: { "cnpg.io/fencedInstances": instances, "cnpg-ts.dev/diskProbeSeconds": "4" } },
    });
  await fence('["lab-1"]');
  await until("PostgreSQL is down", async () => one.postgresProcesses().length === 0, 60_000);
  expect(await holder()).toBe("lab-1");
  // An open for writing never comes back from a FIFO that nobody reads, as nothing does from a disk that hangs.
  const probe = join(one.volume, ".cnpg-ts.probe");
  rmSync(probe, { force: true });
  execFileSync("mkfifo", [probe]);
  lab.giveAway(probe);
  await until("the lease is given back", async () => (await holder()) === "", 60_000);
  expect(one.output).toContain(`no write to ${one.volume} came back for 4000 ms: killed every process of the pod`);
  // Who asks is answered without the disk, and told which volume it is.
  const answer = await until("an answer", async () => one.get("/pg/status"), 60_000);
  expect(answer.status).toBe(503);
  expect(parseVolumeFailure(answer.body)).toMatchObject({ folders: [one.volume] });
  await until("liveness", async () => (await one.get("/healthz")).status === 200);
  await fence(null);
  // Longer than the launcher's limit: to look at the volume kills nothing, and nobody takes the lease meanwhile.
  await until(
    "a volume that was looked at for long",
    async () => (parseVolumeFailure((await one.get("/pg/status")).body)?.silentMs ?? 0) > 10_000,
    60_000,
  );
  expect(one.output.split("killed every process of the pod")).toHaveLength(2);
  expect(await holder()).toBe("");
  expect(one.postgresProcesses()).toEqual([]);
  rmSync(probe);
  await one.ready(60_000);
  expect(await holder()).toBe("lab-1");
}, 240_000);

test("SIGTERM to the launcher ends everything in order", async () => {
  one.signalLauncher("SIGTERM");
  expect(await one.exit).toBe(0);
  expect(one.postgresProcesses()).toEqual([]);
  expect((await lab.lease()).spec["holderIdentity"] ?? "").toBe("");
  expect(one.control()).toContain("shut down");
});
