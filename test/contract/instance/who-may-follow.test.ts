import { afterAll, beforeAll, expect, test } from "vitest";
import type { FailoverQuorum } from "../../../src/api/generated/failoverquorum.ts";
import { checkFailoverQuorum } from "../../../src/plan/cluster/failover-quorum.ts";
import type { PolledInstance } from "../../../src/plan/cluster/observed.ts";
import { bootPrimary, bootStandby } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;
let two: LabInstance;

const synchronous = { method: "any" as const, number: 1, failoverQuorum: true, dataDurability: "required" as const };
const emptyRecord = { apiVersion: "postgresql.cnpg.io/v1", kind: "FailoverQuorum", metadata: { name: "lab" } };

beforeAll(async () => {
  lab = await Lab.start({ instances: 2, spec: { postgresql: { synchronous } } });
  await lab.apply(emptyRecord);
  one = await lab.instance("lab-1");
  two = await lab.instance("lab-2");
  const start = (it: LabInstance) => it.keep();
  await bootPrimary(lab, one, { start });
  await bootStandby(two, start);
});

afterAll(() => lab?.stop());

async function record(): Promise<FailoverQuorum> {
  return JSON.parse(await lab.plane.kubectl(["get", "failoverquorum", "lab", "-n", "default", "-o", "json"]));
}

/** What the operator would say of a failover away from a primary while only the other instance answers. */
function denial(quorum: FailoverQuorum, primary: string, survivor: string): string | null {
  const instances = [{ kind: "answered", name: survivor, ready: true }] as PolledInstance[];
  return checkFailoverQuorum({ quorum, primary, instances, isEligible: () => true });
}

const recordOf = (primary: string, standby: string) =>
  until(`the record of ${primary}`, async () => {
    const { status } = await record();
    return status?.primary === primary && JSON.stringify(status.standbyNames) === JSON.stringify([standby]);
  });

test("the primary records what its transactions wait for, and a failover is allowed by it", async () => {
  await recordOf("lab-1", "lab-2");
  const known = await record();
  expect(known.status).toEqual({ method: "ANY", standbyNames: ["lab-2"], standbyNumber: 1, primary: "lab-1" });
  expect(one.psql("SHOW synchronous_standby_names")).toBe('ANY 1 ("lab-2","lab-1")');
  expect(denial(known, "lab-1", "lab-2")).toBeNull();
  expect(denial(known, "lab-1", "lab-3")).toContain("only 0 of 1");
});

test("a record that was made anew is written again", async () => {
  await lab.plane.kubectl(["delete", "failoverquorum", "lab", "-n", "default"]);
  await lab.apply(emptyRecord);
  expect(denial(await record(), "lab-1", "lab-2")).toContain("quorum");
  await recordOf("lab-1", "lab-2");
});

test("after a switchover and back the record is always of the primary that is", async () => {
  await lab.patchStatus({ targetPrimary: "lab-2" });
  await until("lab-2 is primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-2");
  expect(denial(await record(), "lab-2", "lab-1") ?? "allowed by its own record").toMatch(
    /of lab-1|own record|not set/,
  );
  lab.route(two);
  await recordOf("lab-2", "lab-1");
  await one.ready(60_000);
  await until("lab-1 streams", async () => two.psql("SELECT sync_state FROM pg_stat_replication") === "quorum", 60_000);
  await lab.patchStatus({ targetPrimary: "lab-1" });
  await until("lab-1 is primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-1");
  lab.route(one);
  await recordOf("lab-1", "lab-2");
  await two.ready(60_000);
}, 120_000);

test("where the lease was made anew only a person's word lets another than the current primary go on", async () => {
  // Waiting for the standby here would keep this process from carrying its connection.
  one.psql("SET synchronous_commit = local; CREATE TABLE kept AS SELECT generate_series(1, 100) AS x");
  await until("the standby has it", async () => two.psql("SELECT count(*) FROM kept") === "100");
  await one.kill();
  await lab.plane.kubectl(["delete", "lease", "lab", "-n", "default"]);
  await lab.apply({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "lab" }, spec: {} });
  await lab.patchStatus({ targetPrimary: "lab-2" });
  await until("refused", async () => two.output.includes("only lab-1 may claim it"), 60_000);
  await lab.patchCluster({ metadata: { annotations: { "cnpg-ts.dev/namedPrimary": "lab-3" } } });
  expect((await two.status()).isPrimary).toBe(false);
  await lab.patchCluster({ metadata: { annotations: { "cnpg-ts.dev/namedPrimary": "lab-2" } } });
  await until("lab-2 is primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-2", 60_000);
  expect(two.output).toContain("the lease was made anew and a person named this instance");
  expect(two.psql("SELECT count(*) FROM kept")).toBe("100");
  expect((await lab.lease()).spec["holderIdentity"]).toBe("lab-2");
}, 120_000);
