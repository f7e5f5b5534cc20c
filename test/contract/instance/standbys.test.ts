import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPrimary } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

const names = ["lab-1", "lab-2", "lab-3"];
let lab: Lab;
let one: LabInstance;
let two: LabInstance;
let three: LabInstance;

const streaming = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
const syncStates =
  "SELECT string_agg(application_name || ' ' || sync_state, ', ' ORDER BY application_name) FROM pg_stat_replication";
const slots =
  "SELECT coalesce(string_agg(slot_name, ',' ORDER BY slot_name), '') FROM pg_replication_slots WHERE slot_name !~ '^_cnpg_'";

beforeAll(async () => {
  lab = await Lab.start({
    instances: 3,
    spec: {
      replicationSlots: {
        highAvailability: { enabled: true, slotPrefix: "_cnpg_" },
        synchronizeReplicas: { enabled: true, excludePatterns: ["^private_"] },
        updateInterval: 1,
      },
    },
  });
  [one, two, three] = [await lab.instance("lab-1"), await lab.instance("lab-2"), await lab.instance("lab-3")];
  await bootPrimary(lab, one, { start: (it) => it.keep() });
  const joins = [two, three].map((instance) => instance.job("join", ["--parent-node", "127.0.0.1"]).exit);
  expect(await Promise.all(joins), two.output.slice(-2000)).toEqual([0, 0]);
  for (const instance of [two, three]) instance.keep();
  await Promise.all([two.ready(), three.ready()]);
  await until("both stream", async () => one.psql(streaming) === "2");
  one.psql("CREATE TABLE written (x int)");
});

afterAll(() => lab?.stop());

async function synchronous(spec: object | null, loaded: string): Promise<void> {
  await lab.patchCluster({ spec: { postgresql: { synchronous: spec } } });
  await until(`loaded ${loaded}`, async () => one.psql("SHOW synchronous_standby_names") === loaded);
}

const row = async (value: number) => one.psql(`SELECT count(*) FROM written WHERE x = ${value}`) === "1";

/** A commit beside this process, through which the standbys' streams go; the test can see that it waits. */
function commit(value: number): { ended: Promise<unknown>; waits: () => Promise<unknown> } {
  const session = one.session(`INSERT INTO written VALUES (${value})`);
  const waiting = `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%(${value})'`;
  return { ended: once(session, "exit"), waits: () => until("it waits", async () => one.psql(waiting) === "1") };
}

test("required: a commit waits until one of the standbys is there again", async () => {
  await lab.apply({
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "FailoverQuorum",
    metadata: { name: "lab" },
  });
  const any = { method: "any", number: 1, dataDurability: "required", failoverQuorum: true };
  await synchronous(any, 'ANY 1 ("lab-2","lab-3","lab-1")');
  await until("both count", async () => one.psql(syncStates) === "lab-2 quorum, lab-3 quorum");
  await commit(1).ended;
  const quorum = async () =>
    JSON.parse(await lab.plane.kubectl(["get", "failoverquorum", "lab", "-n", "default", "-o", "json"])).status;
  await until("the quorum is told", async () => (await quorum())?.primary === "lab-1");
  expect(await quorum()).toEqual({
    method: "ANY",
    primary: "lab-1",
    standbyNames: ["lab-2", "lab-3"],
    standbyNumber: 1,
  });

  await Promise.all([two.kill(), three.kill()]);
  const { ended, waits } = commit(2);
  await waits();
  expect(await row(2)).toBe(false);
  // A node that is gone is no reason to ask for less.
  await lab.patchStatus({ instancesStatus: { healthy: ["lab-1"], failed: ["lab-2", "lab-3"] } });
  await lab.patchCluster({ spec: { postgresql: { parameters: { work_mem: "6MB" } } } });
  await until("the change is loaded", async () => one.psql("SHOW work_mem") === "6MB");
  expect(one.psql("SHOW synchronous_standby_names")).toBe('ANY 1 ("lab-2","lab-3","lab-1")');
  await waits();
  two.keep();
  await ended;
  expect(await row(2)).toBe(true);
}, 120_000);

test("preferred: without a healthy standby commits go on, and with one they wait for it", async () => {
  const preferred = { method: "any", number: 1, dataDurability: "preferred" };
  await synchronous({ ...preferred, failoverQuorum: null }, "");
  await two.kill();
  await commit(3).ended;
  expect(await row(3)).toBe(true);
  two.keep();
  three.keep();
  await Promise.all([two.ready(60_000), three.ready(60_000)]);
  await lab.patchStatus({ instancesStatus: { healthy: names, failed: [] } });
  await until("two of them", async () => one.psql("SHOW synchronous_standby_names") === 'ANY 1 ("lab-2","lab-3")');
  await synchronous({ ...preferred, maxStandbyNamesFromCluster: 1 }, 'ANY 1 ("lab-2")');
  await until("only one counts", async () => one.psql(syncStates) === "lab-2 quorum, lab-3 async");
}, 120_000);

test("first, names of the user's around ours, and the older spelling", async () => {
  const first = { method: "first", number: 1, dataDurability: "required", maxStandbyNamesFromCluster: 2 };
  await synchronous(
    { ...first, standbyNamesPre: ["before"], standbyNamesPost: ['af"ter'] },
    'FIRST 1 ("before","lab-2","lab-3","af""ter")',
  );
  await until("one is ahead", async () => one.psql(syncStates) === "lab-2 sync, lab-3 potential");
  await commit(4).ended;
  await synchronous(null, "");
  await lab.patchCluster({ spec: { minSyncReplicas: 1, maxSyncReplicas: 2 } });
  await until("all", async () => one.psql("SHOW synchronous_standby_names") === 'ANY 2 ("lab-2","lab-3")');
  await lab.patchStatus({ instancesStatus: { healthy: ["lab-1", "lab-3"], failed: ["lab-2"] } });
  await until("fewer", async () => one.psql("SHOW synchronous_standby_names") === 'ANY 1 ("lab-3")');
  await commit(5).ended;
  expect((await one.metrics()).body).toMatch(/^cnpg_collector_sync_replicas\{value="observed"\} 1$/m);
  await lab.patchStatus({ instancesStatus: { healthy: names, failed: [] } });
  await lab.patchCluster({ spec: { minSyncReplicas: null, maxSyncReplicas: null } });
  await until("off", async () => one.psql("SHOW synchronous_standby_names") === "");
});

test("a user's slots follow to the standbys, excluded ones and those that are gone do not", async () => {
  // Its name is taken there, which must keep no other slot from being copied.
  const clash = two.session("SELECT pg_create_physical_replication_slot('a_clash', false, true), pg_sleep(600)");
  await until("the name is taken", async () => two.psql(slots) === "a_clash");
  for (const name of ["a_clash", "mine", "private_one"]) {
    one.psql(`SELECT pg_create_physical_replication_slot('${name}', true)`);
  }
  two.psql("SELECT pg_create_physical_replication_slot('stray')");
  two.psql("SELECT pg_create_physical_replication_slot('private_two')");
  await until("copied", async () => three.psql(slots) === "a_clash,mine");
  await until("copied beside the clash", async () => two.psql(slots) === "a_clash,mine,private_two");
  expect(two.output).toMatch(/Could not change a replication slot.*a_clash/);
  clash.kill();
  two.psql("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE temporary");

  const restart = (instance: LabInstance) =>
    instance.psql("SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 'mine'");
  const before = restart(three);
  one.psql("SELECT pg_switch_wal()");
  one.psql("SELECT pg_replication_slot_advance('mine', pg_current_wal_lsn())");
  await until("moved on", async () => restart(three) !== before && restart(three) === restart(one));

  one.psql("SELECT pg_drop_replication_slot('mine')");
  await until("dropped", async () => three.psql(slots) === "a_clash");
  await lab.patchCluster({ spec: { replicationSlots: { synchronizeReplicas: { enabled: false } } } });
  await until("no copies any more", async () => three.psql(slots) === "");
  expect(one.psql(slots)).toBe("a_clash,private_one");
  expect(two.psql(slots)).toContain("private_two");
}, 120_000);

test("a standby that lags or does not stream is not ready, if the probe asks for that", async () => {
  const readiness = { type: "streaming", maximumLag: "1Mi" };
  await lab.patchCluster({ spec: { probes: { readiness } } });
  two.psql("SELECT pg_wal_replay_pause()");
  one.psql("SELECT pg_logical_emit_message(true, 'lag', repeat('x', 3000000))");
  const answer = async (text: string) => {
    const { status, body } = await two.get("/readyz");
    return status === 500 && body.includes(text);
  };
  await until("it lags", () => answer("readiness check failed: streaming replica lagging; detectedLag="));
  expect((await two.status()).replayPaused).toBe(true);
  expect(await one.get("/readyz")).toEqual({ status: 200, body: "OK" });
  two.psql("SELECT pg_wal_replay_resume()");
  await two.ready();
  lab.proxy.cut();
  await until("it is cut off", () => answer("replica not connected via streaming replication"));
  lab.route(one);
  await two.ready(60_000);
  await lab.patchCluster({ spec: { probes: { readiness: { type: "query", maximumLag: null } } } });
  await until("it asks the database", async () => (await two.get("/readyz")).status === 200);
  await lab.patchCluster({ spec: { probes: null } });
}, 120_000);

const connections = (instance: LabInstance) => instance.psql("SHOW max_connections");
const starts = (instance: LabInstance) => instance.psql("SELECT pg_postmaster_start_time()");

async function restartedWith(instance: LabInstance, value: string): Promise<void> {
  const isUp = async () => {
    const { mightBeUnavailable, pendingRestart } = await instance.status();
    // No psql meanwhile: it would hold up this process, and with it the streams that the end of the server waits for.
    return !mightBeUnavailable && !pendingRestart && connections(instance) === value;
  };
  await until(`restarted with ${value}`, isUp, 60_000);
}

/** What the operator does to a standby that waits for a restart. */
async function replacePod(instance: LabInstance): Promise<void> {
  const before = starts(instance);
  await until(`${instance.name} waits`, async () => (await instance.status()).pendingRestart, 60_000);
  instance.signal("SIGTERM");
  await until("a new server", async () => starts(instance) !== before, 60_000);
  await instance.ready(60_000);
}

test("a setting that standbys need is raised on them first, and lowered on the primary first", async () => {
  const before = starts(one);
  await lab.patchCluster({ spec: { postgresql: { parameters: { max_connections: "130" } } } });
  await replacePod(three);
  await replacePod(two);
  expect([one, two, three].map(connections)).toEqual(["100", "130", "130"]);
  expect(starts(one)).toBe(before);
  await lab.patchStatus({ phase: "Primary instance is being restarted in-place", phaseReason: "the operator's turn" });
  await restartedWith(one, "130");

  await lab.patchCluster({ spec: { postgresql: { parameters: { max_connections: "80" } } } });
  const isRestarted = async () => one.output.includes("Decrease of hot standby sensitive parameters");
  await until("the primary by itself", isRestarted, 60_000);
  await restartedWith(one, "80");
  expect((await lab.cluster()).status?.phase).toBe("Applying configuration");
  await until("both stream", async () => one.psql(streaming) === "2", 60_000);
  await replacePod(three);
  await replacePod(two);
  expect([one, two, three].map(connections)).toEqual(["80", "80", "80"]);
  await until("both stream", async () => one.psql(streaming) === "2", 60_000);

  const started = starts(one);
  await lab.patchCluster({
    spec: { primaryUpdateStrategy: "supervised", postgresql: { parameters: { max_connections: "70" } } },
  });
  await until("a person's turn", async () => (await lab.cluster()).status?.phase === "Waiting for user action");
  expect((await lab.cluster()).status?.phaseReason).toBe("User must issue a supervised switchover");
  expect(starts(one)).toBe(started);
}, 240_000);
