import { chown, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SqlRawSession, SqlTarget } from "../../../src/ports/sql-session.ts";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { pingServer } from "../../../src/sql/ping.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { createTestAuthority, type TestAuthority } from "../../support/tls-files.ts";

const hba = `
local all all trust
hostssl replication streaming_replica all cert
hostssl all streaming_replica all cert
host all keeper all scram-sha-256
host all all 127.0.0.1/32 trust
`;

let server: PostgresServer;
let authority: TestAuthority;
const { connect } = createSqlConnector();

beforeAll(async () => {
  authority = await createTestAuthority();
  const leaf = await authority.issue("some-other-name");
  server = await startPostgres({
    hba,
    settings: { ssl: "on", ssl_ca_file: "ca.crt", ssl_cert_file: "server.crt", ssl_key_file: "server.key" },
    async prepare(dataDir, user) {
      const files = { "ca.crt": authority.ca, "server.crt": leaf.cert, "server.key": leaf.key };
      for (const [name, content] of Object.entries(files)) {
        await writeFile(join(dataDir, name), content, { mode: 0o600 });
        await chown(join(dataDir, name), user.uid, user.gid);
      }
    },
  });
  await withSession({}, async (session) => {
    await session.query("CREATE ROLE streaming_replica LOGIN REPLICATION");
    await session.query("CREATE ROLE keeper LOGIN PASSWORD 'kept secret'");
  });
});

afterAll(async () => {
  await server?.stop();
  await authority?.remove();
});

function target(changes: Partial<SqlTarget> = {}): SqlTarget {
  return {
    host: server.socketDir,
    port: server.port,
    user: "postgres",
    database: "postgres",
    applicationName: "contract",
    ...changes,
  };
}

async function withSession<T>(changes: Partial<SqlTarget>, use: (session: SqlRawSession) => Promise<T>): Promise<T> {
  const session = await connect(target(changes));
  try {
    return await use(session);
  } finally {
    await session.close();
  }
}

async function failure(promise: Promise<unknown>): Promise<{ code?: string; message: string }> {
  return promise.then(
    () => ({ message: "did not fail" }),
    (error: unknown) => error as { code?: string; message: string },
  );
}

describe("sessions", () => {
  it("run with the settings that every session of ours has", async () => {
    const rows = await withSession({ statementTimeoutMs: 1500, parameters: { work_mem: "8MB" } }, (session) =>
      session.query(`SELECT name, setting FROM pg_settings WHERE name IN ('application_name', 'client_encoding',
        'search_path', 'synchronous_commit', 'statement_timeout', 'work_mem') ORDER BY name`),
    );
    expect(rows).toEqual([
      { name: "application_name", setting: "contract" },
      { name: "client_encoding", setting: "UTF8" },
      { name: "search_path", setting: "pg_catalog, public, pg_temp" },
      { name: "statement_timeout", setting: "1500" },
      { name: "synchronous_commit", setting: "local" },
      { name: "work_mem", setting: "8192" },
    ]);
  });

  it("keep microseconds, 64-bit integers and infinity, and parse small scalars and arrays", async () => {
    const [row] = await withSession({}, (session) =>
      session.query(`SELECT true AS b, 7::int4 AS i, 9223372036854775807::int8 AS l, 1.5::float8 AS f,
        '-infinity'::timestamptz AS never, '2026-11-30 00:07:21.094997+00'::timestamptz AS t, null AS n,
        ARRAY['a','b'] AS names, '{"a":1}'::jsonb AS j, interval '1 day' AS d`),
    );
    expect(row).toEqual({
      b: true,
      i: 7,
      l: "9223372036854775807",
      f: 1.5,
      never: "-infinity",
      t: "2026-11-30 00:07:21.094997+00",
      n: null,
      names: ["a", "b"],
      j: '{"a": 1}',
      d: "1 day",
    });
  });

  it("give raw results with columns in order, repeated names included", async () => {
    const result = await withSession({}, (session) => session.queryRaw("SELECT 1 AS x, true AS x, $1::text", [null]));
    expect(result).toEqual({
      columns: [
        { name: "x", typeId: 23 },
        { name: "x", typeId: 16 },
        { name: "text", typeId: 25 },
      ],
      rows: [["1", "t", null]],
    });
  });

  it("answer several statements with the last result", async () => {
    expect(await withSession({}, (session) => session.query("SELECT 1 AS a; SELECT 2 AS b"))).toEqual([{ b: 2 }]);
  });

  it("speak the replication protocol", async () => {
    const tls = { ca: authority.ca, ...(await authority.issue("streaming_replica")) };
    const [row] = await withSession(
      { host: "127.0.0.1", user: "streaming_replica", tls, replication: true },
      (session) => session.query("IDENTIFY_SYSTEM"),
    );
    expect(row).toMatchObject({ timeline: 1, systemid: expect.stringMatching(/^\d+$/) });
  });
});

describe("TLS", () => {
  it("authenticates by client certificate, whatever name the server's certificate has", async () => {
    const tls = { ca: authority.ca, ...(await authority.issue("streaming_replica")) };
    const rows = await withSession({ host: "127.0.0.1", user: "streaming_replica", tls }, (session) =>
      session.query("SELECT ssl, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"),
    );
    expect(rows).toEqual([{ ssl: true, client_dn: "/CN=streaming_replica" }]);
  });

  it("refuses a server of another authority", async () => {
    const other = await createTestAuthority();
    try {
      const error = await failure(connect(target({ host: "127.0.0.1", tls: { ca: other.ca } })));
      expect(error.message).toMatch(/certificate|self.signed/i);
    } finally {
      await other.remove();
    }
  });

  it("reports a certificate of another role with the server's code", async () => {
    const tls = { ca: authority.ca, ...(await authority.issue("nobody")) };
    const error = await failure(connect(target({ host: "127.0.0.1", user: "streaming_replica", tls })));
    expect(error).toMatchObject({ name: "SqlError", code: "28000" });
  });
});

describe("failures", () => {
  it("carry the server's code and say what was attempted", async () => {
    const error = await withSession({}, (session) => failure(session.query("SELECT * FROM missing")));
    expect(error).toMatchObject({ name: "SqlError", code: "42P01" });
    expect(error.message).toContain('in database "postgres"');
    expect(await failure(connect(target({ database: "missing" })))).toMatchObject({ code: "3D000" });
    expect(await failure(connect(target({ port: 1 })))).toMatchObject({ code: "ENOENT" });
    expect(await failure(connect(target({ host: "127.0.0.1", port: 1 })))).toMatchObject({ code: "ECONNREFUSED" });
  });

  it("leave the session usable after a failed statement", async () => {
    const rows = await withSession({}, async (session) => {
      await failure(session.query("SELECT 1/0"));
      return session.query("SELECT 1 AS one");
    });
    expect(rows).toEqual([{ one: 1 }]);
  });

  it("never tell the password", async () => {
    const good = { host: "127.0.0.1", user: "keeper", password: "kept secret" };
    expect(await withSession(good, (session) => session.query("SELECT 1 AS one"))).toEqual([{ one: 1 }]);
    const error = await failure(connect(target({ ...good, password: "wrong password" })));
    expect(error).toMatchObject({ code: "28P01" });
    expect(JSON.stringify(error) + error.message).not.toContain("wrong password");
    expect(await failure(connect(target({ host: "127.0.0.1", user: "keeper" })))).toMatchObject({ name: "SqlError" });
  });

  it("end a statement at the server's limit", async () => {
    const error = await withSession({ statementTimeoutMs: 100 }, (session) =>
      failure(session.query("SELECT pg_sleep(10)")),
    );
    expect(error).toMatchObject({ code: "57014" });
  });

  it("end a wait for an answer at the caller's limit, after which the session is gone", async () => {
    await withSession({ queryTimeoutMs: 200 }, async (session) => {
      expect(await failure(session.query("SELECT pg_sleep(10)"))).toMatchObject({ code: "QUERY_TIMEOUT" });
      expect(await failure(session.query("SELECT 1"))).toMatchObject({ code: "QUERY_TIMEOUT" });
    });
  });

  it("tell that the server ended the session", async () => {
    await withSession({}, async (victim) => {
      const [row] = await victim.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      const waiting = failure(victim.query("SELECT pg_sleep(10)"));
      await withSession({}, (session) => session.query("SELECT pg_terminate_backend($1)", [row?.pid]));
      expect(await waiting).toMatchObject({ code: "57P01" });
      expect(await failure(victim.query("SELECT 1"))).toMatchObject({ name: "SqlError" });
    });
  });

  it("keep the caller's reason when it aborts", async () => {
    const controller = new AbortController();
    const session = await connect(target(), controller.signal);
    const waiting = failure(session.query("SELECT pg_sleep(10)"));
    const reason = new Error("no longer wanted");
    controller.abort(reason);
    expect(await waiting).toBe(reason);
    await session.close();
    expect(await failure(connect(target(), controller.signal))).toBe(reason);
  });

  it("do not wait for a server that accepts and then says nothing", async () => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const address = silent.address();
    const port = typeof address === "object" && address ? address.port : 0;
    const sockets: { destroy(): void }[] = [];
    silent.on("connection", (socket) => sockets.push(socket));
    try {
      const error = await failure(connect(target({ host: "127.0.0.1", port, connectTimeoutMs: 200 })));
      expect(error).toMatchObject({ code: "ETIMEDOUT" });
    } finally {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => silent.close(resolve));
    }
  });
});

describe("pingServer", () => {
  it("tells a server that accepts from none at all", async () => {
    expect(await pingServer({ socketDir: server.socketDir, port: server.port })).toBe("accepting");
    expect(await pingServer({ socketDir: server.socketDir, port: 1 })).toBe("noResponse");
  });
});
