import { expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { DatabaseRole } from "../../../src/api/generated/databaserole.ts";
import type { Secret } from "../../../src/api/generated/kubernetes.ts";
import { secretWish } from "../../../src/instance/reconcile/passwords.ts";
import { applicationPasswordUser, isDeclaredPassword } from "../../../src/plan/instance/passwords.ts";

function secret(texts: Record<string, string>): Secret {
  const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, btoa(text)]));
  return { apiVersion: "v1", kind: "Secret", metadata: { name: "db-app", resourceVersion: "7" }, data };
}

test("a Secret gives the password of the user that it names", () => {
  const wish = { kind: "secret", user: "app", password: "p", passthrough: false, version: "7" };
  expect(secretWish("app", secret({ username: "app", password: "p" }))).toEqual(wish);
  expect(secretWish("app", secret({ password: "p" }))).toEqual(wish);
});

test("a Secret of somebody else, or without a password, gives none and says why", () => {
  expect(secretWish("app", secret({ username: "other", password: "p" }))).toBe(
    'wrong username "other" in the Secret, expected "app"',
  );
  expect(secretWish("app", secret({ username: "app" }))).toBe("has no key password");
});

test.each<[string, NonNullable<NonNullable<Cluster["spec"]["managed"]>["roles"]>, string | undefined]>([
  ["no managed role", [], "anna"],
  ["a managed role without a word on the password", [{ name: "anna", createdb: true }], "anna"],
  ["another role with a password", [{ name: "bob", passwordSecret: { name: "bob" } }], "anna"],
  ["a managed role with a password of its own", [{ name: "anna", passwordSecret: { name: "anna-pw" } }], undefined],
  ["a managed role that has none", [{ name: "anna", disablePassword: true }], undefined],
])("with %s", (_, roles, expected) => {
  const cluster: Cluster = {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { name: "db" },
    spec: { instances: 1, bootstrap: { initdb: { database: "shop", owner: "anna" } }, managed: { roles } },
  };
  expect(applicationPasswordUser(cluster)).toBe(expected);
});

test.each<[string, Partial<DatabaseRole["spec"]>, DatabaseRole["status"], object, boolean]>([
  ["its own password", { passwordSecret: { name: "anna-pw" } }, { applied: true }, {}, true],
  ["none", { disablePassword: true }, { applied: true }, {}, true],
  ["no word on it", { login: true }, { applied: true }, {}, false],
  ["one that is not applied yet", { passwordSecret: { name: "anna-pw" } }, { applied: false }, {}, false],
  ["another name", { name: "bob", passwordSecret: { name: "bob" } }, { applied: true }, {}, false],
  ["another cluster", { cluster: { name: "x" }, passwordSecret: { name: "x" } }, { applied: true }, {}, false],
  [
    "no time left",
    { passwordSecret: { name: "anna-pw" } },
    { applied: true },
    { deletionTimestamp: "2026-01-01" },
    false,
  ],
])("of a role that is declared with %s", (_, spec, status, metadata, expected) => {
  const role = {
    metadata: { name: "role-anna", ...metadata },
    spec: { name: "anna", cluster: { name: "db" }, ...spec },
    status,
  } as DatabaseRole;
  const cluster = { metadata: { name: "db" }, spec: { instances: 1 } } as Cluster;
  expect(isDeclaredPassword(cluster, "anna", [role])).toBe(expected);
});

test("a role that the Cluster itself manages is not declared by another object", () => {
  const role = {
    metadata: { name: "role-anna" },
    spec: { name: "anna", cluster: { name: "db" }, passwordSecret: { name: "anna-pw" } },
    status: { applied: true },
  } as DatabaseRole;
  const spec = { instances: 1, managed: { roles: [{ name: "anna" }] } };
  expect(isDeclaredPassword({ metadata: { name: "db" }, spec } as Cluster, "anna", [role])).toBe(false);
});
