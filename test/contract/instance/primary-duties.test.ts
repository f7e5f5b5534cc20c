// What a pass does beside replication, each on a real server: duties that only show when something is asked of them.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dieWithParent } from "../../support/contained.ts";
import { bootPrimary } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";
import { innerPid } from "./processes.ts";

let lab: Lab;
let one: LabInstance;

beforeAll(async () => {
  lab = await Lab.start({
    spec: {
      stopDelay: 16,
      smartShutdownTimeout: 1,
      switchoverDelay: 2,
      postgresql: {
        pg_ident: ["mine somebody app"],
        parameters: { max_slot_wal_keep_size: "16MB", wal_keep_size: "0" },
      },
    },
  });
  one = await lab.instance("lab-1");
  await bootPrimary(lab, one, { checksums: false });
  await until("current primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-1");
});

afterAll(() => lab?.stop());

const coreDumps = () => readFileSync(`/proc/${one.postmasterPid()}/coredump_filter`, "utf8").trim();
const holder = async () => (await lab.lease()).spec["holderIdentity"] ?? "";

/** Keeps the server from writing a checkpoint, and with it from stopping in order. */
function freezeCheckpointer(): void {
  const inside = one.psql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");
  const pid = one.postgresProcesses().find((candidate) => innerPid(candidate) === inside);
  if (pid === undefined) throw new Error(`no process is the checkpointer ${inside}`);
  process.kill(pid, "SIGSTOP");
}

/** Modes of the stops that were logged after a place in the log, with their limits in milliseconds. */
function stopsSince(start: number): [string, string][] {
  const found = one.output.slice(start).matchAll(/Shutting down instance.*"mode":"(\w+)","limitMs":(\d+|null)/g);
  return [...found].map(([, mode = "", limit = ""]) => [mode, limit]);
}

test("shared memory stays out of core dumps, unless the annotation says what else", async () => {
  expect(coreDumps()).toBe("00000031");
  const before = one.postmasterPid();
  await lab.patchCluster({ metadata: { annotations: { "cnpg.io/coredumpFilter": "0x33" } } });
  await lab.patchStatus({ phase: "Primary instance is being restarted in-place", phaseReason: "test" });
  await until("restarted", async () => (await lab.cluster()).status?.phase === "Cluster in healthy state");
  expect(one.postmasterPid()).not.toBe(before);
  expect(coreDumps()).toBe("00000033");
});

test("once a pooler asks for it there is a user that may look passwords up, and nobody else may", async () => {
  const integration = (secrets: string[]) =>
    lab.patchStatus({ poolerIntegrations: { pgBouncerIntegration: { secrets } } });
  const definition =
    "SELECT prosecdef, proconfig FROM pg_proc WHERE proname = 'user_search' AND pronamespace = 'public'::regnamespace";
  const pinned = 't|{"search_path=pg_catalog, pg_temp"}';
  expect(one.psql("SELECT count(*) FROM pg_roles WHERE rolname = 'cnpg_pooler_pgbouncer'")).toBe("0");
  await integration(["lab-pooler"]);
  await until("the function", async () => one.psql(definition) === pinned);
  const asPooler = "SET ROLE cnpg_pooler_pgbouncer; SELECT usename, passwd FROM public.user_search('app')";
  await until("the password", async () => /^app\|SCRAM-SHA-256\$/.test(one.psql(asPooler)));
  expect(() => one.psql("SET ROLE app; SELECT * FROM public.user_search('app')")).toThrow("permission denied");
  expect(one.psql("SELECT has_database_privilege('cnpg_pooler_pgbouncer', 'postgres', 'CONNECT')")).toBe("t");
  one.psql("ALTER FUNCTION public.user_search(text) RESET search_path");
  await integration(["lab-pooler", "another"]);
  await until("pinned again", async () => one.psql(definition) === pinned);
});

test("the exporter's role comes back when somebody drops it, and loses what somebody gave it", async () => {
  const facts =
    "SELECT rolsuper, pg_has_role(rolname, 'pg_monitor', 'member') FROM pg_roles WHERE rolname = 'cnpg_metrics_exporter'";
  const wake = (value: string) => lab.patchCluster({ metadata: { annotations: { "cnpg.io/reloadedAt": value } } });
  await until("it is made", async () => one.psql(facts) === "f|t");
  one.psql("DROP ROLE cnpg_metrics_exporter");
  await wake("1");
  await until("it is back", async () => one.psql(facts) === "f|t");
  one.psql("ALTER ROLE cnpg_metrics_exporter SUPERUSER");
  await wake("2");
  await until("it is as before", async () => one.psql(facts) === "f|t");
});

test("queries of ConfigMaps and Secrets are served, and followed when the operator has seen them change", async () => {
  const yaml = (name: string, value: number) =>
    `${name}:\n  query: SELECT ${value} AS v\n  metrics:\n    - v: { usage: GAUGE, description: "v" }\n`;
  const map = (value: number) =>
    lab.apply({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "queries" },
      data: { mine: yaml("mapped", value) },
    });
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "queries" } };
  await map(42);
  await lab.apply({ ...secret, stringData: { mine: yaml("secret", 7) } });
  const source = [{ name: "queries", key: "mine" }];
  const absent = { name: "nowhere", key: "mine" };
  await lab.patchCluster({
    spec: {
      monitoring: {
        metricsQueriesTTL: "0s",
        customQueriesConfigMap: [absent, ...source],
        customQueriesSecret: source,
      },
    },
  });
  const serves = (line: string) => until(line, async () => (await one.metrics()).body.split("\n").includes(line));
  await serves("cnpg_mapped_v 42");
  await serves("cnpg_secret_v 7");
  expect(one.output).toMatch(/Monitoring queries are left out.*nowhere/);
  await map(43);
  await lab.patchStatus({ configMapResourceVersion: { metrics: { queries: "seen" } } });
  await serves("cnpg_mapped_v 43");
});

test("a probe that asks the database sees what one that only knocks does not", async () => {
  const readiness = (type: string) => lab.patchCluster({ spec: { probes: { readiness: { type } } } });
  await readiness("query");
  one.psql("ALTER DATABASE postgres ALLOW_CONNECTIONS false", "app");
  const others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres'";
  const refused = "readiness check failed:";
  await until("not ready", async () => {
    one.psql(others, "app");
    const { status, body } = await one.get("/readyz");
    return status === 500 && body.includes(refused);
  });
  await readiness("pg_isready");
  await one.ready();
  one.psql("ALTER DATABASE postgres ALLOW_CONNECTIONS true", "app");
  await lab.patchCluster({ spec: { probes: null } });
  await until("back", async () => one.psql("SELECT 1") === "1");
});

test("access rules that cannot be made are told by name, and those of before stay", async () => {
  const hba = () => readFileSync(join(one.pgData, "pg_hba.conf"), "utf8");
  const before = hba();
  const bindSearchAuth = { baseDN: "dc=x", bindDN: "cn=x", bindPassword: { name: "ldap", key: "password" } };
  const set = (ldap: object | null) => lab.patchCluster({ spec: { postgresql: { ldap } } });
  await set({ server: "ldap.example.org", bindSearchAuth });
  await until("it is told", async () => /Reconciler error.*Secret .{1,3}ldap.{1,3} key/.test(one.output));
  expect(hba()).toBe(before);
  const metadata = { name: "ldap" };
  await lab.apply({ apiVersion: "v1", kind: "Secret", metadata, stringData: { password: "of-ldap" } });
  await until("the rule", async () => hba().includes('ldapserver="ldap.example.org"'), 60_000);
  const rules = "SELECT count(*) FROM pg_hba_file_rules WHERE error IS NOT NULL";
  expect(one.psql(rules)).toBe("0");
  await set(null);
  await until("as before", async () => hba() === before);
});

test("the status tells of base backups under way and of slots whose WAL is gone", async () => {
  const certificates = join(one.scratch, "certificates");
  const target = [
    `host=127.0.0.1 port=${one.ports.postgres} user=streaming_replica application_name=lab-2-join sslmode=require`,
    `sslcert=${certificates}/streaming_replica.crt sslkey=${certificates}/streaming_replica.key`,
  ].join(" ");
  const [program = "", ...as] = dieWithParent(lab.user);
  const copy = [join(lab.binDir, "pg_basebackup"), "-D", join(one.volume, "copy"), "-r", "32k", "-c", "fast"];
  const backup = spawn(program, [...as, ...copy, "-d", target], { stdio: "ignore" });
  const [told] = await until("the backup", async () => {
    const { pgStatBasebackupsInfo = [] } = await one.status();
    return pgStatBasebackupsInfo.some((it) => Number(it.backup_streamed) > 0) && pgStatBasebackupsInfo;
  });
  expect(told).toMatchObject({
    usename: "streaming_replica",
    application_name: "lab-2-join",
    phase: "streaming database files",
    backup_streamed_pretty: expect.stringMatching(/^\d+ (bytes|kB)$/),
    tablespaces_total: 1,
  });
  backup.kill();

  one.psql("SELECT pg_create_physical_replication_slot('forgotten', true)");
  const slot = async () => (await one.status()).replicationSlotsInfo?.find((it) => it.slotName === "forgotten");
  expect(await slot()).toMatchObject({ slotType: "physical", walStatus: "reserved", safeWalSize: expect.any(Number) });
  await until("its WAL is gone", async () => {
    one.psql("SELECT pg_logical_emit_message(false, 'x', 'x'); SELECT pg_switch_wal()");
    one.psql("CHECKPOINT");
    return (await slot())?.walStatus === "lost";
  });
  one.psql("SELECT pg_drop_replication_slot('forgotten')");
});

test("a primary goes on while its lease is deleted, and holds the one that the operator makes", async () => {
  const before = one.postmasterPid();
  await lab.plane.kubectl(["delete", "lease", "lab", "-n", "default"]);
  await lab.apply({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "lab" }, spec: {} });
  await until("it holds the new one", async () => (await holder()) === "lab-1", 60_000);
  expect(one.psql("CREATE TABLE of_both_leases (); SELECT pg_is_in_recovery()")).toBe("f");
  expect(one.postmasterPid()).toBe(before);
});

test("a fence is in force after switchoverDelay, whatever PostgreSQL still waits for", async () => {
  freezeCheckpointer();
  const start = one.output.length;
  await lab.patchCluster({ metadata: { annotations: { "cnpg.io/fencedInstances": '["lab-1"]' } } });
  await until("down", async () => one.postgresProcesses().length === 0, 60_000);
  expect(stopsSince(start)).toEqual([
    ["fast", "2000"],
    ["immediate", "null"],
  ]);
  // Whatever was left there, the server starts with every line of its files.
  const identities = join(one.pgData, "pg_ident.conf");
  writeFileSync(identities, "");
  await until("the user's lines", async () => readFileSync(identities, "utf8").includes("mine somebody app"));
  expect(one.postgresProcesses()).toEqual([]);
  await lab.patchCluster({ metadata: { annotations: { "cnpg.io/fencedInstances": null } } });
  await one.ready(60_000);
});

test("at the end of the container the steps share one deadline, a checkpoint without end too, and the lease goes last", async () => {
  freezeCheckpointer();
  const start = one.output.length;
  one.signal("SIGTERM");
  await until("the last step", async () => stopsSince(start).some(([mode]) => mode === "fast"), 60_000);
  expect(one.postgresProcesses()).not.toEqual([]);
  expect(await holder()).toBe("lab-1");
  expect(await one.exit).toBe(0);
  expect(stopsSince(start)).toEqual([
    ["smart", "1000"],
    ["fast", "11000"],
    ["immediate", "null"],
  ]);
  expect(one.output.slice(start)).toContain("Executing CHECKPOINT command before shutdown");
  expect(one.output.slice(start)).not.toContain("Checkpoint completed successfully");
  expect(one.postgresProcesses()).toEqual([]);
  expect(await holder()).toBe("");
}, 120_000);
