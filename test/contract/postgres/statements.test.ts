import { execFile } from "node:child_process";
import { chown, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SqlRawSession, SqlTarget } from "../../../src/ports/sql-session.ts";
import { formatCustomConf } from "../../../src/postgres/configuration.ts";
import { buildPgpass, formatConninfo } from "../../../src/postgres/conninfo.ts";
import { parseControlData } from "../../../src/postgres/control-data.ts";
import { buildSettings } from "../../../src/postgres/custom-conf.ts";
import { buildHbaConf } from "../../../src/postgres/hba-conf.ts";
import { buildIdentConf } from "../../../src/postgres/ident-conf.ts";
import { quoteIdentifier, quoteLiteral } from "../../../src/postgres/identifiers.ts";
import { ensureIncludes } from "../../../src/postgres/includes.ts";
import { compareLsn, lsnDistance, parseLsn } from "../../../src/postgres/lsn.ts";
import { encodeScramPassword } from "../../../src/postgres/scram.ts";
import { sanitizeSlotName } from "../../../src/postgres/slots.ts";
import { parseMemory, parsePostgresBoolean } from "../../../src/postgres/values.ts";
import { formatWalSegment, walSegmentOfLsn } from "../../../src/postgres/wal-name.ts";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { aCluster } from "../../unit/postgres/a-cluster.ts";

const run = promisify(execFile);
const sql = createSqlConnector();
const segmentMiB = 4;
const awkward = "back\\slash 'quote' \"double\" \ttab\nnewline\r\b\f # not a comment";

/** What cannot hold on a test machine: folders and ports of a pod. */
const local = [
  "archive_command",
  "dynamic_shared_memory_type",
  "listen_addresses",
  "log_destination",
  "log_directory",
  "log_filename",
  "logging_collector",
  "port",
  "ssl",
  "ssl_ca_file",
  "ssl_cert_file",
  "ssl_key_file",
  "unix_socket_directories",
];

const ldapBindPassword = 'a "b" #c, d\\';

let server: PostgresServer;
let session: SqlRawSession;
let sha256 = "";

beforeAll(async () => {
  const cluster = aCluster({
    instances: 1,
    postgresql: {
      parameters: { "my.awkward": awkward, max_connections: "120" },
      pg_hba: ["host all keeper all scram-sha-256"],
      ldap: {
        server: "ldap.example.org",
        bindSearchAuth: {
          baseDN: "ou=people, dc=example, dc=org",
          bindDN: 'cn=a "b", dc=org',
          bindPassword: { name: "ldap", key: "password" },
          searchFilter: "(&(uid=$username)(!(gone=#yes)))",
        },
      },
    },
  });
  server = await startPostgres({
    initdbFlags: [`--wal-segsize=${segmentMiB}`],
    async prepare(dataDir, user) {
      const settings = buildSettings(cluster, { major: 15, mode: "run" });
      for (const name of local) settings.delete(name);
      const custom = formatCustomConf(settings);
      sha256 = custom.sha256;
      const main = ensureIncludes(await readFile(join(dataDir, "postgresql.conf"), "utf8"));
      // Superusers of the test come in by name; only the maps of peers and certificates cannot apply here.
      const hba = `local all postgres trust\n${buildHbaConf({ cluster, major: 15, ldapBindPassword })}`;
      const files = {
        "postgresql.conf": main.text,
        "custom.conf": custom.text,
        "override.conf": "",
        "pg_hba.conf": hba.replaceAll(/^hostssl.*\n/gm, ""),
        "pg_ident.conf": buildIdentConf(user.name, ["mymap /^(.*)@example$ \\1"]),
      };
      for (const [name, content] of Object.entries(files)) {
        await writeFile(join(dataDir, name), content);
        await chown(join(dataDir, name), user.uid, user.gid);
      }
    },
  });
  session = await sql.connect(target());
});

afterAll(async () => {
  await session?.close();
  await server?.stop();
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

async function value(text: string, values?: readonly unknown[]): Promise<string> {
  const { rows } = await session.queryRaw(text, values);
  return rows[0]?.[0] ?? "";
}

describe("our files", () => {
  it("are read as they are meant", async () => {
    expect(await value("SHOW my.awkward")).toBe(awkward);
    expect(await value("SHOW max_connections")).toBe("120");
    expect(await value("SHOW cluster_name")).toBe("obs");
    expect(await value("SHOW cnpg.config_sha256")).toBe(sha256);
  });

  it("have no line that PostgreSQL refuses", async () => {
    expect(await session.query("SELECT name, error FROM pg_file_settings WHERE error IS NOT NULL")).toEqual([]);
    expect(await session.query("SELECT error FROM pg_hba_file_rules WHERE error IS NOT NULL")).toEqual([]);
    expect(await session.query("SELECT error FROM pg_ident_file_mappings WHERE error IS NOT NULL")).toEqual([]);
    expect(await session.query("SELECT map_name FROM pg_ident_file_mappings ORDER BY line_number")).toEqual(
      ["local", "cnpg_streaming_replica", "cnpg_pooler_pgbouncer", "cnpg_metrics_exporter", "mymap"].map(
        (map_name) => ({
          map_name,
        }),
      ),
    );
  });
});

describe("the line for LDAP", () => {
  it("is read with every value as it was given", async () => {
    const [line] = await session.query<{ options: string[] }>(
      "SELECT options FROM pg_hba_file_rules WHERE auth_method = 'ldap'",
    );
    // What PostgreSQL adds is no option of ours.
    expect(line?.options.filter((option) => !option.startsWith("ldapscope="))).toEqual([
      "ldapserver=ldap.example.org",
      "ldapbasedn=ou=people, dc=example, dc=org",
      'ldapbinddn=cn=a "b", dc=org',
      `ldapbindpasswd=${ldapBindPassword}`,
      "ldapsearchfilter=(&(uid=$username)(!(gone=#yes)))",
    ]);
  });
});

describe("WAL", () => {
  it.each(["0/1", "0/5000168", "1/FFFFFFFF", "80000000/12345678", "FFFFFFFF/1"])("file of %s", async (lsn) => {
    const mine = walSegmentOfLsn(1, parseLsn(lsn) ?? 0n, segmentMiB * 1024 * 1024);
    expect(formatWalSegment(mine)).toBe(await value("SELECT pg_walfile_name($1)", [lsn]));
  });

  it("positions compare and subtract as PostgreSQL's own", async () => {
    const pairs = [
      ["0/9", "0/10"],
      ["80000000/0", "7FFFFFFF/FFFFFFFF"],
      ["FFFFFFFF/FFFFFFFF", "0/0"],
    ] as const;
    for (const [from, to] of pairs) {
      expect(String(lsnDistance(from, to))).toBe(await value("SELECT pg_wal_lsn_diff($1, $2)", [to, from]));
      expect(compareLsn(from, to) === -1).toBe((await value("SELECT $1::pg_lsn < $2::pg_lsn", [from, to])) === "t");
    }
  });

  it("control data are those of the server", async () => {
    const { stdout } = await run(join(server.binDir, "pg_controldata"), [server.dataDir], { env: { LC_ALL: "C" } });
    const control = parseControlData(stdout);
    expect(control.systemId).toBe(await value("SELECT system_identifier FROM pg_control_system()"));
    expect(control.redoWalFile).toBe(await value("SELECT redo_wal_file FROM pg_control_checkpoint()"));
    expect(control.redoLsn).toBe(await value("SELECT redo_lsn FROM pg_control_checkpoint()"));
    expect(control).toMatchObject({
      state: "in production",
      timeline: 1,
      walSegmentBytes: segmentMiB * 1024 * 1024,
      dataChecksums: false,
      walLevel: "logical",
      hotStandby: {
        max_connections: 120,
        max_worker_processes: 32,
        max_wal_senders: 10,
        max_prepared_transactions: 0,
        max_locks_per_transaction: 64,
      },
    });
  });
});

describe("passwords", () => {
  it.each([
    "simple",
    "it's \\ odd",
    "größe",
    "ｆｕｌｌ",
    "non\u00a0breaking",
    "soft\u00adhyphen",
    "Ⅸ",
    "שלום",
    "mixed שלום",
    "\u{1f4be}",
    "a\u0007b",
  ])("%j encoded by us lets its user in", async (password) => {
    const encoded = encodeScramPassword(password, Buffer.alloc(16, 7));
    await session.query(`DROP ROLE IF EXISTS keeper; CREATE ROLE keeper LOGIN PASSWORD ${quoteLiteral(encoded)}`);
    expect(await value("SELECT rolpassword FROM pg_authid WHERE rolname = 'keeper'")).toBe(encoded);
    // libpq prepares the password itself, so it is the judge; so is the pgpass line.
    const passfile = join(server.socketDir, "pgpass");
    const parameters = { host: "127.0.0.1", port: String(server.port), user: "keeper", dbname: "postgres" };
    await writeFile(passfile, buildPgpass({ name: "x", connectionParameters: parameters }, password), { mode: 0o600 });
    const conninfo = formatConninfo({ ...parameters, passfile, application_name: "it's \\ me" });
    const { stdout } = await run("psql", [
      "-XAt",
      "-d",
      conninfo,
      "-c",
      "SELECT current_user, current_setting('application_name')",
    ]);
    expect(stdout).toBe("keeper|it's \\ me\n");
  });

  it("encoded by PostgreSQL with our salt are the same", async () => {
    await session.query("DROP ROLE IF EXISTS keeper; CREATE ROLE keeper PASSWORD 'größe'");
    const stored = await value("SELECT rolpassword FROM pg_authid WHERE rolname = 'keeper'");
    const salt = Buffer.from(/:(.+)\$/.exec(stored.slice("SCRAM-SHA-256$".length))?.[1] ?? "", "base64");
    expect(encodeScramPassword("größe", salt)).toBe(stored);
  });
});

describe("values", () => {
  it("booleans are read as PostgreSQL reads them", async () => {
    for (const text of ["on", "of", "o", "T", "yes", "n", "1", "2", "", "truth"]) {
      const accepted = await session
        .queryRaw(`SELECT ${quoteLiteral(text)}::bool`)
        .then(({ rows }) => rows[0]?.[0] === "t")
        .catch(() => undefined);
      expect([text, parsePostgresBoolean(text)]).toEqual([text, accepted]);
    }
  });

  it("sizes are read as PostgreSQL reads them", async () => {
    for (const text of ["128MB", "1GB", "1.5GB", "800kB", "4194304B"]) {
      await session.query(`SET work_mem = ${quoteLiteral(text)}`);
      const kilobytes = await value("SELECT setting FROM pg_settings WHERE name = 'work_mem'");
      expect([text, parseMemory(text)]).toEqual([text, BigInt(kilobytes) * 1024n]);
    }
  });

  it("names and texts survive quoting", async () => {
    const odd = `it's "odd" \\ text`;
    expect(await value(`SELECT ${quoteLiteral(odd)}`)).toBe(odd);
    const { columns } = await session.queryRaw(`SELECT 1 AS ${quoteIdentifier(odd)}`);
    expect(columns[0]?.name).toBe(odd);
  });

  it("slot names are ones that PostgreSQL takes", async () => {
    const name = sanitizeSlotName("_cnpg_My.Cluster--12");
    await session.query("SELECT pg_create_physical_replication_slot($1, false, true)", [name]);
    expect(await value("SELECT slot_name FROM pg_replication_slots")).toBe(name);
  });
});
