import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;

beforeAll(async () => {
  lab = await Lab.start();
  one = await lab.instance("lab-1");
});

afterAll(() => lab?.stop());

test("init makes a data folder with the application's database", async () => {
  const { exit } = one.job("initdb", [
    "--initdb-flags=--encoding=UTF8 --locale=C",
    "--app-db-name=app",
    "--app-user=app",
  ]);
  expect(await exit, one.output.slice(-2000)).toBe(0);
  expect(existsSync(join(one.pgData, "PG_VERSION"))).toBe(true);
  expect(existsSync(join(one.pgData, "standby.signal"))).toBe(false);
  expect(existsSync(join(one.pgData, ".check-empty-wal-archive"))).toBe(true);
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
