import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPrimary } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";
import { listProcesses } from "./processes.ts";

const names = ["lab-1", "lab-2", "lab-3"];
const synchronous = { method: "any" as const, number: 1, failoverQuorum: true, dataDurability: "required" as const };
const rows = "SELECT count(*) FROM kept";

let lab: Lab;
let one: LabInstance;
let two: LabInstance;
let three: LabInstance;

async function keep(instance: LabInstance): Promise<void> {
  const addresses = names.map(async (name) => `${name}=127.0.0.1:${(await lab.instance(name)).ports.status}`);
  instance.keep({ environment: { CNPG_TS_PEER_ADDRESSES: (await Promise.all(addresses)).join(",") } });
}

beforeAll(async () => {
  lab = await Lab.start({ instances: 3, spec: { postgresql: { synchronous } } });
  await lab.apply({ apiVersion: "postgresql.cnpg.io/v1", kind: "FailoverQuorum", metadata: { name: "lab" } });
  one = await lab.instance("lab-1");
  two = await lab.instance("lab-2");
  three = await lab.instance("lab-3");
  await bootPrimary(lab, one, { start: keep });
  const joins = [two, three].map((instance) => instance.job("join", ["--parent-node", "127.0.0.1"]));
  expect(await Promise.all(joins.map((join) => join.exit)), two.output.slice(-2000)).toEqual([0, 0]);
  await keep(two);
  await keep(three);
  await Promise.all([two.ready(), three.ready()]);
  await until("both stream", async () => one.psql("SELECT count(*) FROM pg_stat_replication") === "2", 60_000);
});

afterAll(() => lab?.stop());

/** What the operator would do: names a target, and waits until the instance gives the place back for this reason. */
async function isDeclined(instance: LabInstance, reason: string): Promise<void> {
  await lab.patchStatus({ targetPrimary: instance.name });
  await until(
    `${instance.name} declines: ${reason}`,
    async () => {
      const { status } = await lab.cluster();
      return status?.targetPrimary === "pending" && status.phaseReason?.includes(reason);
    },
    90_000,
  );
  expect((await instance.status()).isPrimary).toBe(false);
  await until("the lease is free", async () => !(await lab.lease()).spec["holderIdentity"]);
}

test("the record of the synchronous standbys is written", async () => {
  await until("the record", async () => {
    const text = await lab.plane.kubectl(["get", "failoverquorum", "lab", "-n", "default", "-o", "json"]);
    return JSON.parse(text).status?.standbyNames?.join() === "lab-2,lab-3";
  });
});

test("who lacks what another standby may have acknowledged is not promoted, nor who can't ask it", async () => {
  // Nobody connects anew: from here on only lab-3 receives.
  lab.proxy.target = 0;
  const receivers = listProcesses().filter((it) => it.folder === two.pgData && it.command.includes("walreceiver"));
  expect(receivers.length).toBe(1);
  for (const { pid } of receivers) process.kill(pid, "SIGTERM");
  const streams = "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'lab-2'";
  await until("lab-2 receives nothing", async () => one.psql(streams) === "0");
  // Waiting for the standby here would keep this process from carrying its connection.
  one.psql("SET synchronous_commit = local; CREATE TABLE kept AS SELECT generate_series(1, 100) AS x");
  await until("lab-3 has it", async () => three.psql(rows) === "100");
  await one.kill();
  expect((await three.status()).cnpgTs?.walEndKnown).toBe(true);

  three.signalRuntime("SIGSTOP");
  await isDeclined(two, "only 1 of 2 synchronous standbys can take over");
  three.signalRuntime("SIGCONT");
  await isDeclined(two, "lab-3 has WAL of lab-1 that is missing here");
  // By now the phase's reason is another one; the events still tell a person what to do.
  const told = await until("events", async () => {
    const text = await lab.plane.kubectl(["get", "events", "-n", "default", "-o", "json"]);
    const { items } = JSON.parse(text) as { items: { reason: string; message: string }[] };
    const messages = items.flatMap((it) => (it.reason === "PromotionDeclined" ? [it.message] : []));
    return messages.length >= 2 && messages.join("\n");
  });
  expect(told).toMatch(
    /^lab-2 is not promoted: only 1 of 2 .* lab-3 did not tell lab-2 .* cnpg-ts\.dev\/namedPrimary=lab-2$/m,
  );
}, 180_000);

test("who has the most is promoted, with all that was acknowledged", async () => {
  await lab.patchStatus({ targetPrimary: "lab-3" });
  await until("lab-3 is primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-3", 60_000);
  expect(three.psql(rows)).toBe("100");
  lab.route(three);
  await until("lab-2 follows", async () => two.psql(rows) === "100", 60_000);
}, 150_000);

test("a primary that was stopped in order tells where its WAL ends, and nobody need be asked", async () => {
  await until(
    "lab-2 is synchronous",
    async () => three.psql("SELECT sync_state FROM pg_stat_replication WHERE application_name = 'lab-2'") === "quorum",
    60_000,
  );
  const before = two.output.length;
  await lab.patchStatus({ targetPrimary: "lab-2" });
  await until("lab-2 is primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-2", 60_000);
  expect(two.psql(rows)).toBe("100");
  const since = two.output.slice(before);
  expect(since).toContain("I'm the target primary");
  expect(since).not.toContain("Asked the other instances");
}, 120_000);
