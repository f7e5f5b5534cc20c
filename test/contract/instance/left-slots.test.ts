import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dropLeftSlots } from "../../../src/instance/reconcile/left-slots.ts";
import type { SlotSql } from "../../../src/instance/reconcile/slots.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { serverSessions } from "../../support/server-session.ts";

const { connectTo, runSql } = serverSessions("left-slots");
let primary: PostgresServer;
let standby: PostgresServer;

beforeAll(async () => {
  primary = await startPostgres({ settings: { wal_level: "logical" } });
  const make = (name: string) => `SELECT pg_create_logical_replication_slot('${name}', 'pgoutput')`;
  await runSql(primary, make("subscriber"), make("keep_me"));
  standby = await startPostgres({
    standbyOf: primary,
    // What lies there after a former primary became a standby without a rewind.
    prepare: async (dataDir, { uid, gid }) => {
      const folder = join(dataDir, "pg_replslot");
      execFileSync("cp", ["-r", join(primary.dataDir, "pg_replslot", "subscriber"), folder]);
      execFileSync("cp", ["-r", join(primary.dataDir, "pg_replslot", "keep_me"), folder]);
      execFileSync("chown", ["-R", `${uid}:${gid}`, folder]);
    },
  });
}, 60_000);

afterAll(async () => {
  await standby?.stop();
  await primary?.stop();
});

async function names(server: PostgresServer): Promise<unknown[]> {
  const rows = await runSql(server, "SELECT slot_name FROM pg_replication_slots ORDER BY 1");
  return rows.map((row) => row["slot_name"]);
}

async function drop(server: PostgresServer): Promise<string[]> {
  const logs = captureLogs();
  const session = await connectTo(server)();
  const sql: SlotSql = { query: (text, values) => session.query(text, values) };
  try {
    await dropLeftSlots(sql, { isExcluded: (name) => name.startsWith("keep"), logger: logs.logger });
  } finally {
    await session.close();
  }
  return logs.messages();
}

test("a standby gets rid of the logical slots from when it was the primary, but for those that the user excludes", async () => {
  expect(await names(standby)).toEqual(["keep_me", "subscriber"]);
  expect(await drop(standby)).toEqual(["Changed a replication slot"]);
  expect(await names(standby)).toEqual(["keep_me"]);
  expect(await drop(standby)).toEqual([]);
});

test("a server that is the primary keeps them all", async () => {
  expect(await drop(primary)).toEqual([]);
  expect(await names(primary)).toEqual(["keep_me", "subscriber"]);
});
