import { describe, expect, test } from "vitest";
import {
  type ActualRole,
  planManagedRoles,
  type WantedRole,
  wantedOptions,
} from "../../../../src/plan/instance/managed-roles.ts";

const plain: ActualRole = {
  name: "r",
  bypassrls: false,
  createdb: false,
  createrole: false,
  inherit: true,
  login: false,
  replication: false,
  superuser: false,
  connectionLimit: -1,
  comment: "",
  inRoles: [],
  hasPassword: false,
  transactionId: 7,
};

const applied = { hasPassword: true };
const secret = { passwordSecret: { name: "s" } };

describe("planManagedRoles", () => {
  const cases: [what: string, wanted: Partial<WantedRole>, actual: Partial<ActualRole> | undefined, action?: string][] =
    [
      ["a missing role is created", {}, undefined, "CREATE"],
      ["a role that is gone as wanted is left", { ensure: "absent" }, undefined],
      ["a role that is not wanted is dropped", { ensure: "absent" }, {}, "DELETE"],
      ["an equal role is left", {}, {}],
      ["an attribute differs", { login: true }, {}, "UPDATE"],
      ["unset inherit means true", {}, { inherit: false }, "UPDATE"],
      ["a limit differs", { connectionLimit: 3 }, {}, "UPDATE"],
      ["an expiry is new", { validUntil: "2030-01-01T00:00:00Z" }, {}, "UPDATE"],
      ["an expiry is the same", { validUntil: "2030-01-01T00:00:00Z" }, { validUntilMs: Date.UTC(2030, 0) }],
      ["an expiry is taken back", {}, { validUntilMs: 1 }, "UPDATE"],
      ["a disabled password is there", { disablePassword: true }, { hasPassword: true }, "UPDATE"],
      ["a disabled password is away", { disablePassword: true }, {}],
      ["an unmanaged password is left", {}, { hasPassword: true }],
      ["the password was applied", secret, applied],
      ["somebody altered the role", secret, { ...applied, transactionId: 8 }, "UPDATE"],
      ["the Secret can't be read", { passwordSecret: { name: "other" } }, applied, "UPDATE"],
      ["the comment differs", { comment: "c" }, {}, "SET_COMMENT"],
      ["attributes come before the comment", { comment: "c", login: true }, {}, "UPDATE"],
      ["memberships differ", { inRoles: ["g"] }, {}, "UPDATE_MEMBERSHIPS"],
      ["the order of memberships does not count", { inRoles: ["h", "g"] }, { inRoles: ["g", "h"] }],
      ["a reserved name is left", { name: "cnpg_x" }, undefined],
    ];
  test.each(cases)("%s", (_what, wanted, actual, action) => {
    const plan = planManagedRoles({
      wanted: [{ name: "r", ...wanted }],
      actual: actual ? [{ ...plain, ...actual }] : [],
      secretVersions: new Map([["s", "41"]]),
      passwordStatus: { r: { transactionID: 7, resourceVersion: "41" } },
    });
    expect(plan.actions.map(({ kind }) => kind)).toEqual(action ? [action] : []);
  });

  test("a new version of the Secret asks for an update", () => {
    const plan = planManagedRoles({
      wanted: [{ name: "r", ...secret }],
      actual: [{ ...plain, ...applied }],
      secretVersions: new Map([["s", "42"]]),
      passwordStatus: { r: { transactionID: 7, resourceVersion: "41" } },
    });
    expect(plan.actions.map(({ kind }) => kind)).toEqual(["UPDATE"]);
  });

  test("every role is reported once, sorted", () => {
    const plan = planManagedRoles({
      wanted: [{ name: "b" }, { name: "new" }, { name: "a" }, { name: "pg_x" }],
      actual: ["postgres", "z", "b", "a", "app"].map((name) => ({ ...plain, name })),
      secretVersions: new Map(),
      passwordStatus: {},
    });
    expect(plan.byStatus).toEqual({
      reconciled: ["a", "b"],
      "pending-reconciliation": ["new"],
      "not-managed": ["app", "z"],
      reserved: ["pg_x", "postgres"],
    });
  });
});

describe("wantedOptions", () => {
  const expires = { validUntilMs: 1 };
  test.each<[string, Partial<WantedRole>, Pick<ActualRole, "validUntilMs"> | undefined, string | undefined]>([
    ["a new role that never expires", {}, undefined, undefined],
    ["one that never expired", {}, {}, undefined],
    ["one whose end is taken back", {}, expires, "infinity"],
    ["one whose end is moved", { validUntil: "2030-01-01T00:00:00Z" }, expires, "2030-01-01T00:00:00Z"],
  ])("%s", (_, role, actual, validUntil) => {
    const { bypassrls, createdb, createrole, inherit, login, replication, superuser, connectionLimit } = plain;
    const attributes = { bypassrls, createdb, createrole, inherit, login, replication, superuser, connectionLimit };
    const options = wantedOptions({ name: "r", ...role }, actual, { kind: "none" });
    expect(options).toEqual({ attributes, password: { kind: "none" }, ...(validUntil ? { validUntil } : {}) });
  });

  test("a password that stays as it is is not named", () => {
    expect(wantedOptions({ name: "r" }, undefined, undefined)).not.toHaveProperty("password");
  });
});
