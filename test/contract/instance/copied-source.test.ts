import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSqlConnector } from "../../../src/sql/pg-connector.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres-server.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

const password = "s3cret-of-the-source";
const hba = [
  "local all all trust",
  "host all,replication copier 127.0.0.1/32 scram-sha-256",
  "host shop alice 127.0.0.1/32 scram-sha-256",
  "host all postgres 127.0.0.1/32 trust",
  "",
].join("\n");

let lab: Lab;
let source: PostgresServer;

async function sql(database: string, ...texts: string[]): Promise<void> {
  const target = { host: source.socketDir, port: source.port, user: "postgres", applicationName: "test", database };
  const session = await createSqlConnector().connect(target);
  try {
    for (const text of texts) await session.query(text);
  } finally {
    await session.close();
  }
}

beforeAll(async () => {
  source = await startPostgres({
    settings: { wal_level: "logical", max_connections: "130", checkpoint_completion_target: "0" },
    hba,
  });
  await sql(
    "postgres",
    `CREATE ROLE copier SUPERUSER LOGIN REPLICATION PASSWORD '${password}'`,
    "CREATE ROLE readers",
    "CREATE ROLE alice LOGIN CREATEDB PASSWORD 'x' IN ROLE readers",
    "CREATE DATABASE shop OWNER alice",
    "CREATE DATABASE second",
    "ALTER SYSTEM SET archive_command = 'touch /tmp/never'",
  );
  await sql(
    "shop",
    "CREATE SCHEMA s AUTHORIZATION alice",
    "CREATE TABLE s.t (id int PRIMARY KEY)",
    "ALTER TABLE s.t OWNER TO alice",
    "GRANT SELECT ON s.t TO readers",
    "INSERT INTO s.t SELECT generate_series(1, 100)",
    "SELECT lo_from_bytea(4711, 'large')",
    "ALTER LARGE OBJECT 4711 OWNER TO alice",
    "CREATE SCHEMA hidden",
    "CREATE EXTENSION citext",
    "CREATE SCHEMA code AUTHORIZATION alice",
    "CREATE TABLE code.stamped (name citext, note text)",
    "ALTER TABLE code.stamped OWNER TO alice",
    "CREATE FUNCTION code.stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 'fired'; RETURN NEW; END $$",
    "CREATE TRIGGER stamp BEFORE INSERT ON code.stamped FOR EACH ROW EXECUTE FUNCTION code.stamp()",
  );
  lab = await Lab.start({
    spec: {
      bootstrap: { pg_basebackup: { source: "origin", database: "app", owner: "app" } },
      externalClusters: [
        {
          name: "origin",
          connectionParameters: { host: "127.0.0.1", port: String(source.port), user: "copier", dbname: "postgres" },
          password: { name: "origin", key: "password" },
        },
        {
          name: "shop-only",
          connectionParameters: { host: "127.0.0.1", port: String(source.port), user: "alice", dbname: "shop" },
          password: { name: "origin", key: "alice" },
        },
      ],
    },
  });
  const stringData = { password, alice: "x" };
  await lab.apply({ apiVersion: "v1", kind: "Secret", metadata: { name: "origin" }, stringData });
});

afterAll(async () => {
  await lab?.stop();
  await source?.stop();
});

/** Starts what a job has left, as the primary of a cluster of its own. */
async function serve(instance: LabInstance): Promise<void> {
  await lab.patchStatus({
    targetPrimary: instance.name,
    currentPrimary: null as never,
    instanceNames: [instance.name],
  });
  lab.route(instance);
  instance.run();
  await instance.ready(60_000);
}

async function retire(instance: LabInstance): Promise<void> {
  instance.signal("SIGTERM");
  await instance.exit;
  await lab.patchStatus({ currentPrimary: null as never, timelineID: null as never });
  await lab.plane.kubectl(["delete", "lease", "lab", "-n", "default"]);
  await lab.apply({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "lab" }, spec: {} });
}

const bootstrap = (section: object) => lab.patchCluster({ spec: { bootstrap: section } });

test("a replica cluster's first instance is a standby of its source, also after attempts that were killed", async () => {
  const instance = await lab.instance("lab-4");
  await lab.patchCluster({ spec: { replica: { enabled: true, source: "origin" } } });
  for (const afterMs of [400, 1_500]) {
    const job = instance.job("pgbasebackup", []);
    await sleep(afterMs);
    await job.kill();
  }
  expect(await instance.job("pgbasebackup", []).exit, instance.output.slice(-3000)).toBe(0);
  await lab.patchCluster({ spec: { replica: null } });
  expect(existsSync(join(instance.pgData, "standby.signal"))).toBe(true);
  const override = readFileSync(join(instance.pgData, "override.conf"), "utf8");
  expect(override).toContain(`port=''${source.port}''`);
  expect(override).toContain("passfile=");
  expect(override).not.toContain(password);
});

test("a copy of a running server becomes a cluster of its own", async () => {
  const instance = await lab.instance("lab-1");
  expect(await instance.job("pgbasebackup", []).exit, instance.output.slice(-3000)).toBe(0);
  expect(instance.output).not.toContain(password);
  expect(instance.volumeEntries()).toEqual(["pgdata"]);
  await serve(instance);
  expect(instance.psql("SELECT count(*) FROM s.t", "shop")).toBe("100");
  expect(instance.psql("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'app'")).toBe("app");
  expect(instance.psql("SHOW archive_command")).toContain("wal-archive");
  await retire(instance);
});

test("imports one database by a user who gets into no other, and gives it to its new owner, also after attempts that were killed", async () => {
  const imported = { source: { externalCluster: "shop-only" }, type: "microservice", databases: ["shop"] };
  const postImportApplicationSQL = ["CREATE TABLE after_import AS SELECT count(*) AS n FROM s.t"];
  const initdb = { database: "app", owner: "app", import: { ...imported, postImportApplicationSQL } };
  await bootstrap({ pg_basebackup: null, initdb });
  const instance = await lab.instance("lab-2");
  const args = [
    "--initdb-flags=--encoding=UTF8 --locale=C",
    "--app-db-name=app",
    "--app-user=app",
    // The dump brings one of these, which has to make room for it.
    "--post-init-template-sql='CREATE EXTENSION citext' 'CREATE EXTENSION hstore'",
  ];
  for (const point of ["Exporting database", '"section":"pre-data"', '"section":"data"', '"section":"post-data"']) {
    const job = instance.job("import", args);
    const start = instance.output.length;
    await until(point, async () => instance.output.slice(start).includes(point));
    await job.kill();
  }
  expect(await instance.job("import", args).exit, instance.output.slice(-3000)).toBe(0);
  expect(instance.output).not.toContain(password);
  expect(existsSync(join(instance.pgData, "dumps"))).toBe(false);
  await serve(instance);
  expect(instance.psql("SELECT n FROM after_import", "app")).toBe("100");
  expect(instance.psql("SELECT tableowner FROM pg_tables WHERE schemaname = 's'", "app")).toBe("app");
  expect(instance.psql("SELECT convert_from(lo_get(4711), 'UTF8')", "app")).toBe("large");
  const stamped = "WITH row AS (INSERT INTO code.stamped VALUES ('A') RETURNING *) SELECT note, name = 'a' FROM row";
  expect(instance.psql(stamped, "app")).toBe("fired|t");
  const extensions = "SELECT string_agg(extname, ' ' ORDER BY extname) FROM pg_extension";
  expect(instance.psql(extensions, "app")).toBe("citext hstore plpgsql");
  expect(instance.psql("SELECT rolsuper FROM pg_roles WHERE rolname = 'app'")).toBe("f");
  expect(instance.psql("SHOW fsync")).toBe("on");
  await retire(instance);
}, 240_000);

test("imports definitions alone, with the user's options; an attempt that fails in the middle leaves no superuser", async () => {
  const schemaOnly = {
    source: { externalCluster: "origin" },
    schemaOnly: true,
    pgDumpExtraOptions: ["--exclude-schema=hidden"],
    postImportApplicationSQL: null,
  };
  const options = (pgRestorePostdataOptions: string[] | null) =>
    bootstrap({ initdb: { import: { ...schemaOnly, pgRestorePostdataOptions } } });
  const instance = await lab.instance("lab-5");
  const args = ["--initdb-flags=--encoding=UTF8 --locale=C", "--app-db-name=app", "--app-user=app"];
  await options(["--no-such-option"]);
  expect(await instance.job("import", args).exit).toBe(1);
  expect(instance.output).toContain("no-such-option");
  await options(null);
  expect(await instance.job("import", args).exit, instance.output.slice(-3000)).toBe(0);
  await serve(instance);
  expect(instance.psql("SELECT count(*) FROM s.t", "app")).toBe("0");
  expect(instance.psql("SELECT contype FROM pg_constraint WHERE conrelid = 's.t'::regclass", "app")).toBe("p");
  expect(instance.psql("SELECT to_regnamespace('hidden') IS NULL", "app")).toBe("t");
  expect(instance.psql("SELECT rolsuper FROM pg_roles WHERE rolname = 'app'")).toBe("f");
  await bootstrap({ initdb: { import: { schemaOnly: null, pgDumpExtraOptions: null } } });
  await retire(instance);
});

test("imports roles and databases as they are, superusers as ordinary roles", async () => {
  const monolith = { type: "monolith", databases: ["*"], roles: ["*"], postImportApplicationSQL: null };
  await bootstrap({ initdb: { import: monolith } });
  const instance = await lab.instance("lab-3");
  const args = ["--initdb-flags=--encoding=UTF8 --locale=C"];
  expect(await instance.job("import", args).exit, instance.output.slice(-3000)).toBe(0);
  await serve(instance);
  expect(
    instance.psql("SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database WHERE NOT datistemplate"),
  ).toBe("postgres second shop");
  expect(instance.psql("SELECT tableowner FROM pg_tables WHERE schemaname = 's'", "shop")).toBe("alice");
  expect(instance.psql("SELECT has_table_privilege('readers', 's.t', 'SELECT')", "shop")).toBe("t");
  expect(instance.psql("SELECT pg_has_role('alice', 'readers', 'MEMBER')")).toBe("t");
  const roles = "SELECT rolsuper, rolreplication FROM pg_authid WHERE rolname = 'copier'";
  expect(instance.psql(roles)).toBe("f|f");
  expect(instance.psql("SELECT rolcreatedb, rolpassword LIKE 'SCRAM%' FROM pg_authid WHERE rolname = 'alice'")).toBe(
    "t|t",
  );
});

test("a Subscription follows a publication of the source, and is dropped with its object", async () => {
  const instance = await lab.instance("lab-3");
  await sql("shop", "CREATE PUBLICATION goods FOR TABLE s.t");
  const spec = {
    cluster: { name: "lab" },
    name: "goods",
    dbname: "shop",
    externalClusterName: "origin",
    publicationName: "goods",
    publicationDBName: "shop",
    parameters: { copy_data: "false" },
    subscriptionReclaimPolicy: "delete",
  };
  const subscription = { apiVersion: "postgresql.cnpg.io/v1", kind: "Subscription", metadata: { name: "goods" }, spec };
  await lab.apply(subscription);
  const status = async () =>
    (
      JSON.parse(await lab.plane.kubectl(["get", "subscription", "goods", "-n", "default", "-o", "json"])) as {
        status?: { applied?: boolean; message?: string };
      }
    ).status;
  await until("applied", async () => (await status())?.applied === true, 60_000);
  await sql("shop", "INSERT INTO s.t VALUES (101)");
  await until("the row", async () => instance.psql("SELECT max(id) FROM s.t", "shop") === "101", 60_000);
  expect(instance.psql("SELECT subconninfo FROM pg_subscription")).not.toContain(password);
  await lab.apply({ ...subscription, spec: { ...spec, parameters: { ...spec.parameters, binary: "true" } } });
  await until("changed", async () => instance.psql("SELECT subbinary FROM pg_subscription") === "t", 60_000);
  await lab.plane.kubectl(["delete", "subscription", "goods", "-n", "default", "--timeout=60s"]);
  expect(instance.psql("SELECT count(*) FROM pg_subscription")).toBe("0");
}, 120_000);

test("a rotated password of an external cluster reaches its file once the operator has seen it", async () => {
  const instance = await lab.instance("lab-3");
  const file = () => readFileSync(join(instance.scratch, "external", "origin", "pgpass"), "utf8");
  expect(file()).toContain(`:copier:${password}`);
  const stringData = { password: "rotated" };
  await lab.apply({ apiVersion: "v1", kind: "Secret", metadata: { name: "origin" }, stringData });
  await lab.patchStatus({ secretsResourceVersion: { externalClusterSecretVersion: { origin: "seen" } } });
  await until("the new one", async () => file().includes(":copier:rotated"), 60_000);
});
