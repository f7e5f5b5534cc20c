import { afterAll, beforeAll, expect, test } from "vitest";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;
const limitMs = 60_000;

const object = (kind: string, name: string, spec: object) => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind,
  metadata: { name },
  spec: { cluster: { name: "lab" }, ...spec },
});

const kubectl = (...args: string[]) => lab.plane.kubectl([...args, "-n", "default"]);

interface DeclaredStatus {
  applied?: boolean;
  message?: string;
  servers?: unknown;
}

const declared = async (kind: string, name: string): Promise<DeclaredStatus> =>
  (JSON.parse(await kubectl("get", kind, name, "-o", "json")) as { status?: DeclaredStatus }).status ?? {};

beforeAll(async () => {
  lab = await Lab.start();
  one = await lab.instance("lab-1");
  const { exit } = one.job("initdb", ["--app-db-name=app", "--app-user=app"]);
  expect(await exit, one.output.slice(-2000)).toBe(0);
  one.run();
  await one.ready();
});

afterAll(() => lab?.stop());

test("a bad database holds up neither another one with its schemas nor a publication", async () => {
  await lab.apply(
    object("Database", "bad", { name: "bad", owner: "nobody" }),
    object("Database", "good", { name: "good", owner: "app", schemas: [{ name: "sales", owner: "app" }] }),
    object("Database", "twice", { name: "twice", owner: "app", extensions: [{ name: "ltree" }, { name: "ltree" }] }),
    object("Publication", "everything", { name: "everything", dbname: "app", target: { allTables: true } }),
  );
  await until(
    "database and publication",
    async () =>
      one.psql("SELECT count(*) FROM pg_database WHERE datname IN ('good', 'bad')") === "1" &&
      one.psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'sales'", "good") === "1" &&
      one.psql("SELECT count(*) FROM pg_publication WHERE puballtables", "app") === "1",
    limitMs,
  );
  const message = await until("message", async () => (await declared("databases", "bad")).message, limitMs);
  expect(message).toBe('while creating database "bad": ERROR: role "nobody" does not exist (SQLSTATE 42704)');
  const refusal = await until("refusal", async () => (await declared("databases", "twice")).message, limitMs);
  expect(refusal).toMatch(/^the resource failed admission validation on: spec\.extensions\[1\]\.name/);
  expect(one.psql("SELECT count(*) FROM pg_database WHERE datname = 'twice'")).toBe("0");
});

test("of two databases of one name that are made at once one wins, and the other's removal drops nothing", async () => {
  const twin = { name: "twin", owner: "app", databaseReclaimPolicy: "delete" };
  await lab.apply(object("Database", "twin-a", twin), object("Database", "twin-b", twin));
  const states = async () => ({ a: await declared("databases", "twin-a"), b: await declared("databases", "twin-b") });
  const { a, b } = await until(
    "both dealt with",
    async () => {
      const read = await states();
      return read.a.applied !== undefined && read.b.applied !== undefined && read;
    },
    limitMs,
  );
  const [loser, winner] = a.applied ? ["twin-b", "twin-a"] : ["twin-a", "twin-b"];
  expect([a, b].filter((status) => status.applied)).toHaveLength(1);
  expect((a.applied ? b : a).message).toBe(`"twin" is already managed by object "${winner}"`);
  await kubectl("delete", "database", loser, "--timeout=30s");
  expect(one.psql("SELECT count(*) FROM pg_database WHERE datname = 'twin'")).toBe("1");
});

test("extension, foreign data wrapper and server of a database are made, changed and dropped in the right order", async () => {
  const spec = (ensure: "present" | "absent", port: string) => ({
    name: "far",
    owner: "app",
    extensions: [{ name: "postgres_fdw", ensure }],
    fdws: [
      { name: "postgres_fdw", ensure, usage: [{ name: "app" }] },
      { name: "own", ensure, handler: "-", validator: "-" },
      { name: "lent", ensure, owner: "app" },
    ],
    servers: [
      {
        name: "remote",
        fdw: "postgres_fdw",
        ensure,
        options: [{ name: "port", value: port }],
        usage: [{ name: "app" }],
      },
      { name: "broken", fdw: "missing", ensure },
    ],
  });
  // One of the servers is nothing that the webhooks would let by.
  const metadata = { name: "far", annotations: { "cnpg.io/validation": "disabled" } };
  const far = (wanted: object) => ({ ...object("Database", "far", wanted), metadata });
  await lab.apply(far(spec("present", "5433")));
  const contents = async () => {
    const read = await declared("databases", "far");
    return read.servers && read;
  };
  const status = await until("contents", contents, limitMs);
  expect(status).toMatchObject({
    applied: false,
    message: "database object reconciliation failed",
    fdws: [
      { name: "postgres_fdw", applied: true },
      { name: "own", applied: true },
      { name: "lent", applied: true },
    ],
    servers: [
      { name: "remote", applied: true },
      { name: "broken", applied: false, message: expect.stringContaining('"missing" does not exist') },
    ],
  });
  const facts =
    "SELECT srvoptions, has_server_privilege('app', 'remote', 'USAGE'), has_foreign_data_wrapper_privilege('app', 'postgres_fdw', 'USAGE') FROM pg_foreign_server";
  expect(one.psql(facts, "far")).toBe("{port=5433}|t|t");
  await lab.apply(far(spec("present", "5434")));
  await until("changed option", async () => one.psql(facts, "far") === "{port=5434}|t|t", limitMs);
  await lab.apply(far(spec("absent", "5434")));
  // In one go: a failure would rest for half a minute.
  await until("all gone", async () => (await declared("databases", "far")).applied === true, 20_000);
  expect(one.psql("SELECT count(*) FROM pg_foreign_data_wrapper", "far")).toBe("0");
  await lab.apply(far({ name: "far", owner: "app" }));
  await until("nothing told of them", async () => !("servers" in (await declared("databases", "far"))), limitMs);
});

/** What the operator writes when it sees another version of a password Secret. */
async function seenByOperator(secret: string, role: string): Promise<void> {
  const version = await kubectl("get", "secret", secret, "-o", "jsonpath={.metadata.resourceVersion}");
  const condition = {
    type: "PasswordSecretChange",
    status: "True",
    reason: "ChangeDetected",
    message: version,
    lastTransitionTime: new Date().toISOString(),
  };
  const patch = JSON.stringify({ status: { conditions: [condition] } });
  await kubectl("patch", "databaserole", role, "--subresource=status", "--type=merge", "-p", patch);
}

test("a DatabaseRole is made, follows its password Secret, yields to the cluster's own roles and is dropped", async () => {
  const password = (text: string) => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "dante-password", labels: { "cnpg.io/reload": "true" } },
    type: "kubernetes.io/basic-auth",
    stringData: { username: "dante", password: text },
  });
  const stored = () => one.psql("SELECT rolpassword FROM pg_authid WHERE rolname = 'dante'");
  const dante = {
    name: "dante",
    login: true,
    comment: "the poet",
    inRoles: ["pg_monitor"],
    passwordSecret: { name: "dante-password" },
    databaseRoleReclaimPolicy: "delete",
  };
  await lab.apply(object("DatabaseRole", "role-dante", dante));
  const told = (name: string) => async () => (await declared("databaseroles", name)).message;
  const missing = await until("missing Secret", told("role-dante"), limitMs);
  expect(missing).toBe('secrets "dante-password" not found');
  await lab.apply(password("first"));
  const applied = async () => {
    const status = await declared("databaseroles", "role-dante");
    return status.applied && status;
  };
  const status = await until("role", applied, limitMs);
  expect(status).toMatchObject({ observedGeneration: 1, secretResourceVersion: expect.stringMatching(/^\d+$/) });
  expect(status.message).toBeUndefined();
  expect(
    one.psql(
      "SELECT rolcanlogin, shobj_description(oid, 'pg_authid'), pg_has_role('dante', 'pg_monitor', 'MEMBER') FROM pg_authid WHERE rolname = 'dante'",
    ),
  ).toBe("t|the poet|t");
  const before = stored();
  expect(before).toMatch(/^SCRAM-SHA-256\$4096:/);
  await lab.apply(password("second"));
  await seenByOperator("dante-password", "role-dante");
  await until("new password", async () => stored() !== before, limitMs);
  await lab.apply(object("DatabaseRole", "second", dante));
  await until("conflict", told("second"), limitMs);
  expect(await declared("databaseroles", "second")).toMatchObject({
    applied: false,
    message: '"dante" is already managed by object "role-dante"',
  });
  await lab.patchCluster({ spec: { managed: { roles: [{ name: "inline" }] } } });
  await lab.apply(object("DatabaseRole", "inline", { name: "inline" }));
  const refused = await until("refusal", told("inline"), limitMs);
  expect(refused).toBe("database role is already managed by the CNPG cluster");
  await kubectl("delete", "databaseroles", "second", "role-dante", "--wait=false");
  await until(
    "dropped role",
    async () => one.psql("SELECT count(*) FROM pg_roles WHERE rolname = 'dante'") === "0",
    limitMs,
  );
});

test("the application's owner, once an object declares it with a password, keeps that one", async () => {
  const secret = (name: string, password: string) => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name },
    type: "kubernetes.io/basic-auth",
    stringData: { username: "app", password },
  });
  const stored = () => one.psql("SELECT rolpassword FROM pg_authid WHERE rolname = 'app'");
  const first = stored();
  await lab.apply(secret("owner-password", "declared"));
  const spec = { name: "app", login: true, passwordSecret: { name: "owner-password" } };
  await lab.apply(object("DatabaseRole", "owner", spec));
  await until("applied", async () => (await declared("databaseroles", "owner")).applied === true, limitMs);
  const kept = stored();
  expect(kept).not.toBe(first);
  await lab.apply(secret("lab-app", "another"));
  await lab.patchStatus({ secretsResourceVersion: { applicationSecretVersion: "seen" } });
  await until("left alone", async () => one.output.includes("left to the object that declares it"), limitMs);
  expect(stored()).toBe(kept);
});

test("what was changed or dropped by hand is seen within a minute and made again", async () => {
  await lab.apply(
    object("Database", "watched", {
      name: "watched",
      owner: "app",
      extensions: [{ name: "hstore" }, { name: "ltree" }],
    }),
    object("DatabaseRole", "watched", { name: "watcher", login: true }),
    object("Publication", "watched", { name: "watched", dbname: "app", target: { allTables: true } }),
  );
  const applied = async () =>
    (await Promise.all(["databases", "databaseroles", "publications"].map((kind) => declared(kind, "watched")))).every(
      (status) => status.applied === true,
    );
  await until("applied", applied, limitMs);
  one.psql("DROP EXTENSION hstore", "watched");
  one.psql("ALTER DATABASE watched OWNER TO postgres");
  one.psql("DROP PUBLICATION watched", "app");
  one.psql("DROP ROLE watcher");
  const facts = () => [
    one.psql(
      "SELECT string_agg(extname, ',' ORDER BY extname) FROM pg_extension WHERE extname <> 'plpgsql'",
      "watched",
    ),
    one.psql("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'watched'"),
    one.psql("SELECT count(*) FROM pg_publication WHERE pubname = 'watched'", "app"),
    one.psql("SELECT count(*) FROM pg_roles WHERE rolname = 'watcher' AND rolcanlogin"),
  ];
  await until("all back", async () => facts().join() === "hstore,ltree,app,1,1", 2 * limitMs);
  expect(one.output).toMatch(/not as it was applied any more.*owner of database/);
  await until("told", applied, limitMs);
}, 240_000);

test("an object that was released with its Cluster is not held again by an instance that still runs", async () => {
  const published = object("Publication", "left", { name: "left", dbname: "app", target: { allTables: true } });
  await lab.apply(published);
  await until("publication", async () => (await declared("publications", "left")).applied, limitMs);
  await kubectl("delete", "clusters.postgresql.cnpg.io", "lab");
  const status = JSON.stringify({ status: { applied: false, observedGeneration: 0 } });
  await kubectl("patch", "publications", "left", "--subresource=status", "--type=merge", "-p", status);
  const changed = JSON.stringify({ metadata: { finalizers: null }, spec: { parameters: { publish: "insert" } } });
  await kubectl("patch", "publications", "left", "--type=merge", "-p", changed);
  await until("word of it", async () => one.output.includes("left alone, as its Cluster is gone"), limitMs);
  expect(await kubectl("get", "publications", "left", "-o", "jsonpath={.metadata.finalizers}")).toBe("");
});
