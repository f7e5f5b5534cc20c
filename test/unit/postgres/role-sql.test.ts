import { expect, test } from "vitest";
import { alterRole, changeMemberships, commentOnRole, createRole } from "../../../src/postgres/role-sql.ts";

const attributes = {
  bypassrls: false,
  createdb: true,
  createrole: false,
  inherit: true,
  login: true,
  replication: false,
  superuser: false,
  connectionLimit: 5,
};

test("a role is created with its options in the order of the reference", () => {
  const sql = createRole('a"b', {
    attributes,
    inRoles: ["g", "h"],
    password: { kind: "set", stored: "it's" },
    validUntil: "infinity",
  });
  expect(sql).toBe(
    `CREATE ROLE "a""b" WITH NOBYPASSRLS CREATEDB NOCREATEROLE INHERIT LOGIN NOREPLICATION NOSUPERUSER ` +
      `CONNECTION LIMIT 5 IN ROLE "g", "h" PASSWORD 'it''s' VALID UNTIL 'infinity'`,
  );
});

test("an alteration leaves out what is not decided and takes a password away", () => {
  expect(alterRole("a", { attributes })).not.toMatch(/PASSWORD|VALID UNTIL|IN ROLE/);
  expect(alterRole("a", { attributes, password: { kind: "none" } })).toMatch(/ PASSWORD NULL$/);
});

test("comments and memberships are quoted; only the difference is granted and revoked", () => {
  expect(commentOnRole("a", "o'c")).toBe(`COMMENT ON ROLE "a" IS 'o''c'`);
  expect(changeMemberships("a", ["x", "y"], ["y", "z"])).toEqual([`GRANT "z" TO "a"`, `REVOKE "x" FROM "a"`]);
});
