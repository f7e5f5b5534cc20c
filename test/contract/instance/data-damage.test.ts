import { renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;

beforeAll(async () => {
  lab = await Lab.start();
  one = await lab.instance("lab-1");
  const args = ["--initdb-flags=--encoding=UTF8 --locale=C", "--app-db-name=app", "--app-user=app"];
  expect(await one.job("initdb", args).exit, one.output.slice(-2000)).toBe(0);
  one.run();
  await one.ready();
}, 120_000);

afterAll(() => lab?.stop());

test("a server that lets nobody in because its files are gone is neither ready nor answers as a primary, until they are back", async () => {
  const oid = one.psql("SELECT oid FROM pg_database WHERE datname = 'postgres'");
  const file = join(one.pgData, "base", oid, "PG_VERSION");
  renameSync(file, `${file}.away`);
  const unready = await until("unready", async () => {
    const answer = await one.get("/readyz");
    return answer.status === 500 && answer;
  });
  expect(unready.body).toMatch(/^readiness check failed: .*"base\/\d+" is not a valid data directory/);
  const status = await one.get("/pg/status");
  expect(status.status).toBe(500);
  expect(status.body).toContain(`base/${oid}`);
  expect((await one.get("/healthz")).status).toBe(200);
  expect((await one.get("/startupz")).status).toBe(200);
  expect(one.output.split("PostgreSQL lets nobody in")).toHaveLength(2);

  renameSync(`${file}.away`, file);
  await until("ready again", async () => (await one.get("/readyz")).status === 200);
  expect(await one.status()).toMatchObject({ isPrimary: true });
});
