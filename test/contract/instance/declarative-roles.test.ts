import { afterAll, beforeAll, expect, test } from "vitest";
import type { WantedRole } from "../../../src/plan/instance/managed-roles.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;

const limitMs = 60_000;

const secret = (password: string) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "dante-password" },
  type: "kubernetes.io/basic-auth",
  stringData: { username: "dante", password },
});

const setRoles = (roles: WantedRole[]) => lab.patchCluster({ spec: { managed: { roles } } });

const stored = () => one.psql("SELECT rolpassword FROM pg_authid WHERE rolname = 'dante'");

const managedStatus = async () => (await lab.cluster()).status?.managedRolesStatus ?? {};

const dante: WantedRole = { name: "dante", login: true, createdb: true, passwordSecret: { name: "dante-password" } };

beforeAll(async () => {
  lab = await Lab.start();
  await lab.apply(secret("first"));
  one = await lab.instance("lab-1");
  const { exit } = one.job("initdb", ["--app-db-name=app", "--app-user=app"]);
  expect(await exit, one.output.slice(-2000)).toBe(0);
  one.run();
  await one.ready();
});

afterAll(() => lab?.stop());

test("roles are created with attributes, memberships, comment and password; one that fails holds up no other", async () => {
  await setRoles([
    { name: "broken", inRoles: ["nobody"] },
    { name: "group" },
    { ...dante, comment: "the poet", inRoles: ["group"], validUntil: "2050-01-01T00:00:00Z" },
  ]);
  const status = await until(
    "roles",
    async () => {
      const read = await managedStatus();
      return read.byStatus?.["reconciled"]?.includes("dante") && read;
    },
    limitMs,
  );
  expect(status.byStatus?.["reconciled"]).toEqual(["dante", "group"]);
  expect(status.byStatus?.["pending-reconciliation"]).toEqual(["broken"]);
  expect(status.byStatus?.["reserved"]).toContain("streaming_replica");
  expect(status.byStatus?.["not-managed"]).toEqual(["app"]);
  expect(status.cannotReconcile?.["broken"]).toEqual([
    'could not perform CREATE on role broken: role "nobody" does not exist',
  ]);
  expect(status.passwordStatus?.["dante"]).toEqual({
    transactionID: expect.any(Number),
    resourceVersion: expect.stringMatching(/^\d+$/),
  });
  expect(
    one.psql(
      "SELECT rolcreatedb, rolcanlogin, rolvaliduntil = '2050-01-01 00:00:00+00', shobj_description(oid, 'pg_authid') FROM pg_authid WHERE rolname = 'dante'",
    ),
  ).toBe("t|t|t|the poet");
  expect(one.psql("SELECT pg_has_role('dante', 'group', 'MEMBER')")).toBe("t");
  expect(stored()).toMatch(/^SCRAM-SHA-256\$4096:/);
});

test("a changed Secret gives a new password, while the manager runs and right after a restart; no password is logged", async () => {
  const before = stored();
  await one.kill();
  await lab.apply(secret("second"));
  one.run();
  await one.ready();
  await until("new password", async () => stored() !== before, limitMs);
  const second = stored();
  await lab.apply(secret("third"));
  await lab.patchStatus({ secretsResourceVersion: { managedRoleSecretVersion: { "dante-password": "seen" } } });
  await until("another one while it runs", async () => stored() !== second, limitMs);
  expect(one.output).not.toMatch(/SCRAM-SHA-256\$4096:|PASSWORD '/);
});

test("what somebody altered is put back, an expiry and a membership are taken back", async () => {
  one.psql("ALTER ROLE dante SUPERUSER");
  await setRoles([dante, { name: "group" }]);
  await until(
    "put back",
    async () =>
      one.psql("SELECT rolsuper, rolvaliduntil = 'infinity' FROM pg_authid WHERE rolname = 'dante'") === "f|t" &&
      one.psql("SELECT pg_has_role('dante', 'group', 'MEMBER')") === "f",
    limitMs,
  );
});

test("a password is disabled; a role that owns something is not dropped and says why", async () => {
  one.psql("CREATE TABLE owned (); ALTER TABLE owned OWNER TO dante");
  await setRoles([{ name: "dante", login: true, createdb: true, disablePassword: true }]);
  await until("no password", async () => stored() === "", limitMs);
  await setRoles([
    { name: "dante", ensure: "absent" },
    { name: "group", ensure: "absent" },
  ]);
  const status = await until(
    "refusal",
    async () => {
      const read = await managedStatus();
      return read.cannotReconcile?.["dante"] && read;
    },
    limitMs,
  );
  expect(status.cannotReconcile?.["dante"]?.[0]).toMatch(/^could not perform DELETE on role dante: owner of table/);
  expect(one.psql("SELECT count(*) FROM pg_roles WHERE rolname = 'group'")).toBe("0");
  one.psql("DROP TABLE owned");
  await until(
    "dropped",
    async () => one.psql("SELECT count(*) FROM pg_roles WHERE rolname = 'dante'") === "0",
    limitMs,
  );
  await setRoles([]);
  await until("nothing left to report", async () => Object.keys(await managedStatus()).length === 0, limitMs);
});
