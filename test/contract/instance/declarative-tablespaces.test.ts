import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

type Tablespace = NonNullable<Cluster["spec"]["tablespaces"]>[number];

let lab: Lab;
let one: LabInstance;

const limitMs = 30_000;

const storage = { size: "1Gi" };

const setTablespaces = (tablespaces: Tablespace[]) => lab.patchCluster({ spec: { tablespaces } });

/** Waits until the status says of each tablespace what is wanted. */
async function states(wanted: object[]): Promise<void> {
  let last: unknown;
  await until(
    `status ${JSON.stringify(wanted)}`,
    async () => {
      last = (await lab.cluster()).status?.tablespacesStatus;
      expect(last).toEqual(wanted);
      return true;
    },
    limitMs,
  );
}

const owners = () =>
  one.psql(
    `SELECT string_agg(spcname || '=' || pg_get_userbyid(spcowner), ' ' ORDER BY spcname) FROM pg_tablespace
      WHERE spcname NOT LIKE 'pg\\_%'`,
  );

function mount(name: string): void {
  for (const folder of [one.tablespaces, join(one.tablespaces, name)]) {
    mkdirSync(folder, { recursive: true });
    chownSync(folder, lab.user.uid, lab.user.gid);
  }
}

beforeAll(async () => {
  lab = await Lab.start();
  one = await lab.instance("lab-1");
  const { exit } = one.job("initdb", ["--app-db-name=app", "--app-user=app"]);
  expect(await exit, one.output.slice(-2000)).toBe(0);
  one.run();
  await one.ready();
});

afterAll(() => lab?.stop());

test("a tablespace waits for its mount and for every volume, then is created, temporary ones too", async () => {
  mount("my_hot");
  await setTablespaces([
    { name: "my_hot", storage },
    { name: "scratch", storage, temporary: true, owner: { name: "postgres" } },
  ]);
  const noMount = "deferred until mount point is created";
  const noVolume = "deferred until all required PVCs are healthy";
  await states([
    { name: "my_hot", owner: "app", state: "pending", error: noVolume },
    { name: "scratch", owner: "postgres", state: "pending", error: noMount },
  ]);
  expect(owners()).toBe("");
  await lab.patchStatus({ healthyPVC: ["lab-1", "lab-1-tbs-my-hot", "lab-1-tbs-scratch"] });
  await states([
    { name: "my_hot", owner: "app", state: "reconciled" },
    { name: "scratch", owner: "postgres", state: "pending", error: noMount },
  ]);
  mount("scratch");
  await states([
    { name: "my_hot", owner: "app", state: "reconciled" },
    { name: "scratch", owner: "postgres", state: "reconciled" },
  ]);
  expect(owners()).toBe("my_hot=app scratch=postgres");
  expect(one.psql("SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = 'my_hot'")).toBe(
    join(one.tablespaces, "my_hot", "data"),
  );
  await until("temp_tablespaces", async () => one.psql("SHOW temp_tablespaces") === "scratch", limitMs);
  expect(one.psql("CREATE TEMP TABLE t (a int); SELECT pg_relation_filepath('t') LIKE 'pg_tblspc/%'")).toBe("t");
});

test("an owner is changed; one that does not exist is told and holds up no other", async () => {
  await setTablespaces([
    { name: "my_hot", storage, owner: { name: "nobody" } },
    { name: "scratch", storage, owner: { name: "app" } },
  ]);
  await states([
    {
      name: "my_hot",
      owner: "nobody",
      state: "pending",
      error: 'while updating tablespace my_hot: ERROR: role "nobody" does not exist (SQLSTATE 42704)',
    },
    { name: "scratch", owner: "app", state: "reconciled" },
  ]);
  expect(owners()).toBe("my_hot=app scratch=app");
  await until("no temp_tablespaces", async () => one.psql("SHOW temp_tablespaces") === "", limitMs);
  await lab.patchCluster({ spec: { managed: { roles: [{ name: "nobody" }] } } });
  await states([
    { name: "my_hot", owner: "nobody", state: "reconciled" },
    { name: "scratch", owner: "app", state: "reconciled" },
  ]);
  expect(owners()).toBe("my_hot=nobody scratch=app");
});
