import { expect, test } from "vitest";
import { alterServer, alterWrapper, createServer, createWrapper } from "../../../src/postgres/foreign-sql.ts";

const sql = (steps: readonly { sql: string }[]) => steps.map((step) => step.sql);

const options = [
  { name: "host", value: "it's" },
  { name: "port", value: "5433" },
  { name: "gone", value: "", ensure: "absent" as const },
];

test("a wrapper is made with functions, options, owner and usage", () => {
  const usage = [{ name: "app" }, { name: "public", type: "revoke" as const }];
  const item = { name: "files", handler: "public.file_handler", validator: "-", owner: "postgres", options, usage };
  expect(createWrapper(item)).toEqual([
    {
      sql: `CREATE FOREIGN DATA WRAPPER "files" HANDLER "public"."file_handler" NO VALIDATOR OPTIONS ("host" 'it''s', "port" '5433')`,
    },
    { sql: `ALTER FOREIGN DATA WRAPPER "files" OWNER TO "postgres"` },
    {
      sql: `GRANT USAGE ON FOREIGN DATA WRAPPER "files" TO "app"`,
      what: `granting USAGE ON FOREIGN DATA WRAPPER "files" to app`,
    },
    {
      sql: `REVOKE USAGE ON FOREIGN DATA WRAPPER "files" FROM PUBLIC`,
      what: `revoking USAGE ON FOREIGN DATA WRAPPER "files" from public`,
    },
  ]);
});

test("of a wrapper only what differs is changed", () => {
  const known = { owner: "postgres", handler: "file_handler", validator: "-", options: { port: "1", gone: "x" } };
  expect(sql(alterWrapper({ name: "files", handler: "public.file_handler", options }, known))).toEqual([
    `ALTER FOREIGN DATA WRAPPER "files" OPTIONS (ADD "host" 'it''s', SET "port" '5433', DROP "gone")`,
  ]);
  expect(sql(alterWrapper({ name: "files", handler: "-", owner: "app" }, known))).toEqual([
    `ALTER FOREIGN DATA WRAPPER "files" NO HANDLER`,
    `ALTER FOREIGN DATA WRAPPER "files" OWNER TO "app"`,
  ]);
  expect(alterWrapper({ name: "files" }, known)).toEqual([]);
});

test("a server is made and changed", () => {
  const item = { name: "far", fdw: "postgres_fdw", options, usage: [{ name: "app" }] };
  const grant = `GRANT USAGE ON FOREIGN SERVER "far" TO "app"`;
  expect(sql(createServer(item))).toEqual([
    `CREATE SERVER "far" FOREIGN DATA WRAPPER "postgres_fdw" OPTIONS ("host" 'it''s', "port" '5433')`,
    grant,
  ]);
  expect(sql(alterServer(item, { host: "it's", port: "5433" }))).toEqual([grant]);
});
