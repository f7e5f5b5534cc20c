import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPrimary } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;
let two: LabInstance;

const streaming = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";

beforeAll(async () => {
  lab = await Lab.start({ instances: 2, spec: { postgresql: { parameters: { max_connections: "150" } } } });
  one = await lab.instance("lab-1");
  two = await lab.instance("lab-2");
  await bootPrimary(lab, one, { checksums: false });
});

afterAll(() => lab?.stop());

test("a join that is killed at any point leaves nothing in the way of the next attempt", async () => {
  // On a quick machine the later attempts are done before they are killed; what they made is whole, and kept.
  let whole = 0;
  for (const afterMs of [150, 400, 800, 1_500]) {
    const job = two.job("join", ["--parent-node", "127.0.0.1"]);
    await sleep(afterMs);
    await job.kill();
    if (existsSync(two.pgData) && !two.volumeEntries().includes(".cnpg-ts.copying")) whole += 1;
  }
  expect(whole).toBeLessThan(4);
  expect(await two.job("join", ["--parent-node", "127.0.0.1"]).exit, two.output.slice(-2000)).toBe(0);
  expect(existsSync(join(two.pgData, "standby.signal"))).toBe(true);
  // No attempt that was cut short left a copy of the primary behind.
  expect(two.volumeEntries().filter((name) => name.startsWith("pgdata_"))).toHaveLength(whole);
  expect(two.volumeEntries()).not.toContain(".cnpg-ts.copying");
});

test("a join over a whole data folder keeps it aside", async () => {
  expect(await two.job("join", ["--parent-node", "127.0.0.1"]).exit, two.output.slice(-2000)).toBe(0);
  expect(two.volumeEntries().filter((name) => name.startsWith("pgdata_")).length).toBeGreaterThan(0);
  two.run();
  await two.ready();
  await until("streams", async () => one.psql(streaming) === "1");
});

test("a lowered setting restarts the primary first, and the standby only after it has replayed that", async () => {
  await lab.patchCluster({ spec: { postgresql: { parameters: { max_connections: "120" } } } });
  await until("the primary restarted", async () => one.psql("SHOW max_connections") === "120", 60_000);
  const status = await until(
    "the standby may follow",
    async () => {
      const read = await two.status();
      return read.pendingRestart && read;
    },
    60_000,
  );
  expect(status.pendingRestartForDecrease).toBe(true);
  expect(two.psql("SHOW max_connections")).toBe("150");
  const cluster = await lab.cluster();
  expect(cluster.status?.phase).toBe("Applying configuration");
});

test("a standby that starts while its own control file asks for more still starts", async () => {
  two.signal("SIGTERM");
  expect(await two.exit).toBe(0);
  await lab.patchCluster({ spec: { postgresql: { parameters: { max_connections: "90" } } } });
  two.run();
  await two.ready(60_000);
  await until("streams", async () => one.psql(streaming) === "1", 60_000);
});

test("the slot of an instance that is gone is dropped", async () => {
  two.signal("SIGTERM");
  expect(await two.exit).toBe(0);
  await lab.patchStatus({ instanceNames: ["lab-1"], instancesStatus: { healthy: ["lab-1"] } });
  await until("slot gone", async () => one.psql("SELECT count(*) FROM pg_replication_slots") === "0");
  const voters = async () =>
    JSON.parse((await lab.lease()).metadata.annotations?.["cnpg-ts.dev/voters"] ?? "{}").voters;
  await until("voters", async () => JSON.stringify(await voters()) === '["lab-1"]');
});

test("a join that finds no primary ends, and says what to look at, in the words that its flags give to the log", async () => {
  const three = await lab.instance("lab-3");
  await lab.patchCluster({ spec: { startDelay: 2 } });
  lab.proxy.cut();
  const flags = ["--log-level=loud", "--log-field-level=severity", "--log-field-timestamp=at"];
  expect(await three.job("join", ["--parent-node", "127.0.0.1", ...flags]).exit).toBe(1);
  expect(three.output).toContain(
    "could not be reached for 2 s (spec.startDelay): check that the cluster has a primary",
  );
  expect(three.output).toMatch(/^\{"severity":"warning","at":"[^"]+","msg":"Unknown log level, using info",.*"loud"/m);
  expect(three.output).not.toContain('"level":');
  expect(existsSync(join(three.scratch, "tmp"))).toBe(true);
  expect(existsSync(three.pgData)).toBe(false);
});
