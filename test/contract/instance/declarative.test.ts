import { afterAll, beforeAll, expect, test } from "vitest";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;
const limitMs = 60_000;

const object = (kind: string, name: string, spec: object) => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind,
  metadata: { name },
  spec: { cluster: { name: "lab" }, ...spec },
});

beforeAll(async () => {
  lab = await Lab.start();
  one = await lab.instance("lab-1");
  const { exit } = one.job("initdb", ["--app-db-name=app", "--app-user=app"]);
  expect(await exit, one.output.slice(-2000)).toBe(0);
  one.run();
  await one.ready();
});

afterAll(() => lab?.stop());

test("a bad database holds up neither another one with its schemas nor a publication", async () => {
  await lab.apply(
    object("Database", "bad", { name: "bad", owner: "nobody" }),
    object("Database", "good", { name: "good", owner: "app", schemas: [{ name: "sales", owner: "app" }] }),
    object("Publication", "everything", { name: "everything", dbname: "app", target: { allTables: true } }),
  );
  await until(
    "database and publication",
    async () =>
      one.psql("SELECT count(*) FROM pg_database WHERE datname IN ('good', 'bad')") === "1" &&
      one.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'sales'", "good") === "1" &&
      one.psql("SELECT count(*) FROM pg_publication WHERE puballtables", "app") === "1",
    limitMs,
  );
});
