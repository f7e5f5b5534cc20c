import { expect, test } from "vitest";
import type { Database } from "../../../../src/api/generated/database.ts";
import {
  type ContentFact,
  type DatabaseFacts,
  findContentDrift,
  findDatabaseDrift,
} from "../../../../src/plan/instance/declared-drift.ts";

type Spec = Database["spec"];
const spec = (change: Partial<Spec> = {}): Spec => ({ name: "hr", owner: "app", cluster: { name: "c" }, ...change });
const facts: DatabaseFacts = {
  owner: "app",
  allowConnections: true,
  connectionLimit: -1,
  isTemplate: false,
  tablespace: "pg_default",
};

test.each<[string, Partial<Spec>, Partial<DatabaseFacts> | undefined, string[]]>([
  ["is as declared", {}, {}, []],
  ["has what nobody declared", {}, { connectionLimit: 3, isTemplate: true, tablespace: "fast" }, []],
  ["is gone", {}, undefined, ['database "hr" is gone']],
  ["is gone as declared", { ensure: "absent" }, undefined, []],
  ["is there again", { ensure: "absent" }, {}, ['database "hr" is there']],
  ["belongs to somebody else", {}, { owner: "postgres" }, ['owner of database "hr" is "postgres"']],
  [
    "has other limits",
    { connectionLimit: 5, allowConnections: true, tablespace: "" },
    { allowConnections: false },
    ['allowConnections of database "hr" is false', 'connectionLimit of database "hr" is -1'],
  ],
])("a database that %s", (_about, change, actual, expected) => {
  expect(findDatabaseDrift(spec(change), actual && { ...facts, ...actual })).toEqual(expected);
});

const extension = (change: Partial<ContentFact> = {}): ContentFact => ({
  list: "extensions",
  name: "pg_stat_statements",
  version: "1.10",
  schema: "public",
  ...change,
});

test.each<[string, Partial<Spec>, ContentFact[], string[]]>([
  ["nothing is declared", {}, [extension()], []],
  ["an extension is there", { extensions: [{ name: "pg_stat_statements" }] }, [extension()], []],
  [
    "an extension is gone",
    { extensions: [{ name: "pg_stat_statements" }] },
    [extension({ list: "schemas" })],
    ['extension "pg_stat_statements" is gone'],
  ],
  [
    "an extension is another one",
    { extensions: [{ name: "pg_stat_statements", version: "1.9", schema: "own" }] },
    [extension()],
    ['version of extension "pg_stat_statements" is "1.10"', 'schema of extension "pg_stat_statements" is "public"'],
  ],
  [
    "a schema is somebody else's, another one without a declared owner is left",
    { schemas: [{ name: "sales", owner: "app" }, { name: "free" }] },
    [
      { list: "schemas", name: "sales", owner: "bob" },
      { list: "schemas", name: "free", owner: "bob" },
    ],
    ['owner of schema "sales" is "bob"'],
  ],
  [
    "what was removed is there again",
    {
      fdws: [{ name: "w", ensure: "absent" }],
      servers: [
        { name: "s", fdw: "w", ensure: "absent" },
        { name: "t", fdw: "w" },
      ],
    },
    [{ list: "fdws", name: "w" }],
    ['foreign data wrapper "w" is there', 'foreign server "t" is gone'],
  ],
  ["a wrapper is there, whoever owns it", { fdws: [{ name: "w", owner: "app" }] }, [{ list: "fdws", name: "w" }], []],
])("in a database where %s", (_about, change, actual, expected) => {
  expect(findContentDrift(spec(change), actual)).toEqual(expected);
});
