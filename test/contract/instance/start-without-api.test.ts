import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiProxy, proxyApiServer } from "./api-proxy.ts";
import { bootPrimary, bootStandby } from "./boot.ts";
import { Lab, type LabInstance, type RunOptions, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;
let two: LabInstance;
/** The way of both to the API server. */
let api: ApiProxy;
let options: RunOptions;

beforeAll(async () => {
  lab = await Lab.start({ instances: 2 });
  api = await proxyApiServer(lab, "instances");
  options = { environment: { KUBECONFIG: api.kubeconfig } };
  [one, two] = [await lab.instance("lab-1"), await lab.instance("lab-2")];
  await bootPrimary(lab, one);
  await bootStandby(two, (it) => it.run(options));
});

afterAll(async () => {
  await lab?.stop();
  await api?.close();
});

async function stop(instance: LabInstance): Promise<void> {
  instance.signal("SIGTERM");
  expect(await instance.exit, instance.output.slice(-2000)).toBe(0);
}

/** Lines that an instance has logged since this was called. */
function since(instance: LabInstance): () => string {
  const start = instance.output.length;
  return () => instance.output.slice(start);
}

test("a stopped standby starts and follows while the API server is away, and is looked after again once it is back", async () => {
  const note = join(two.scratch, "certificates", ".standby-of-pod");
  await until("a whole pass of the standby", async () => readFileSync(note, "utf8") === "uid-of-lab-2");
  await stop(two);
  api.cut();
  const log = since(two);
  two.run(options);
  await two.ready(60_000);
  expect(log()).toContain("Starting PostgreSQL without the Cluster");
  await until(
    "it streams",
    async () => one.psql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") === "1",
  );
  const started = two.psql("SELECT pg_postmaster_start_time()");
  api.restore();
  await lab.patchCluster({ spec: { postgresql: { parameters: { work_mem: "7MB" } } } });
  await until("a pass with the Cluster", async () => two.psql("SHOW work_mem") === "7MB", 60_000);
  expect(two.psql("SELECT pg_postmaster_start_time()")).toBe(started);
}, 180_000);

test("a stopped primary does not start while the API server is away", async () => {
  await stop(one);
  api.cut();
  const log = since(one);
  one.run(options);
  await until("it looked twice", async () => log().includes("which needs the primary lease"), 60_000);
  expect(one.postgresProcesses()).toEqual([]);
  expect(log()).not.toContain("Starting PostgreSQL without the Cluster");
  api.restore();
  await one.ready(90_000);
  expect(one.psql("SELECT pg_is_in_recovery()")).toBe("f");
}, 180_000);
