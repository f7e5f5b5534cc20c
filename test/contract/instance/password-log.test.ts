import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { InstanceContext } from "../../../src/instance/instance-context.ts";
import { PasswordStep } from "../../../src/instance/reconcile/passwords.ts";
import type { SecretReader } from "../../../src/instance/secret-reader.ts";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres({
    settings: {
      log_statement: "all",
      log_duration: "on",
      log_min_duration_statement: "0",
      log_min_duration_sample: "0",
      log_statement_sample_rate: "1",
    },
  });
});
afterAll(() => server?.stop());

test("a new password reaches the log in no form, whatever PostgreSQL is asked to log", async () => {
  const data = { password: Buffer.from("open sesame").toString("base64") };
  const secret = { metadata: { name: "s", resourceVersion: "1" }, data };
  const secrets = { read: async () => ({ kind: "found", secret }) } as unknown as SecretReader;
  const context = {
    settings: { postgresPort: server.port },
    paths: { socketDir: server.socketDir },
    sql: createSqlConnector(),
    random: { bytes: (count: number) => new Uint8Array(count) },
    logger: captureLogs().logger,
  } as unknown as InstanceContext;
  const cluster = { metadata: { name: "c" }, spec: { enableSuperuserAccess: true } } as Cluster;
  await new PasswordStep(context, secrets).reconcile(cluster, new AbortController().signal);
  const session = await createSqlConnector().connect({
    host: server.socketDir,
    port: server.port,
    user: "postgres",
    database: "postgres",
    applicationName: "test",
    connectTimeoutMs: 5_000,
  });
  const [role] = await session.query("SELECT rolpassword FROM pg_authid WHERE rolname = 'postgres'");
  await session.close();
  expect(String(role?.["rolpassword"])).toMatch(/^SCRAM-SHA-256\$/);
  expect(server.output()).toContain("SELECT rolpassword");
  expect(server.output()).not.toMatch(/open sesame|SCRAM-SHA-256\$|ALTER ROLE/);
});
