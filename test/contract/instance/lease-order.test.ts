import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bootPrimary } from "./boot.ts";
import { clusterName, Lab, type LabInstance, until } from "./lab.ts";
import { innerPid } from "./processes.ts";

let lab: Lab;
let one: LabInstance;

beforeAll(async () => {
  lab = await Lab.start();
  one = await lab.instance("lab-1");
  await bootPrimary(lab, one);
});

afterAll(() => lab?.stop());

async function leaseSpec(): Promise<Record<string, unknown>> {
  return (await lab.lease()).spec;
}

const leaseDurationMs = 15_000;
const retryPeriodMs = 2_000;

/** Renews the Lease in the name of an instance that is not here; gives when, in milliseconds since 1970. */
async function renewForAnother(): Promise<number> {
  const now = Date.now();
  const renewTime = new Date(now).toISOString().replace("Z", "000Z");
  const spec = { holderIdentity: "lab-9", leaseDurationSeconds: 15, renewTime, acquireTime: renewTime };
  const patch = JSON.stringify({ spec });
  await lab.plane.kubectl(["patch", "lease", clusterName, "-n", "default", "--type=merge", "-p", patch]);
  return now;
}

test("the lease is renewed until PostgreSQL is down, and given back after", async () => {
  const session = one.session("SELECT pg_sleep(600)");
  const find = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'";
  await until("the session runs", async () => one.psql(find) !== "");
  const backend = one.psql(find);
  one.signal("SIGTERM");
  await until("the stop waits for the session", async () => one.output.includes("Shutting down instance"), 60_000);
  for (let renewals = 0; renewals < 2; renewals += 1) {
    const before = (await leaseSpec())["renewTime"];
    await until("a renewal", async () => (await leaseSpec())["renewTime"] !== before);
  }
  expect((await leaseSpec())["holderIdentity"]).toBe("lab-1");
  expect(one.output).not.toContain("Released the primary lease");
  const pid = one.postgresProcesses().find((candidate) => innerPid(candidate) === backend);
  expect(pid, "the session's backend").toBeDefined();
  process.kill(pid ?? 0, "SIGTERM");
  expect(await one.exit, one.output.slice(-2000)).toBe(0);
  session.kill();
  const [down, released] = [one.output.indexOf("postmaster exited"), one.output.indexOf("Released the primary lease")];
  expect(down).toBeGreaterThan(0);
  expect(released).toBeGreaterThan(down);
  expect((await leaseSpec())["holderIdentity"]).toBe("");
}, 120_000);

test("a primary's PostgreSQL starts only once the lease is held, however long another one renews it", async () => {
  const start = one.output.length;
  const log = () => one.output.slice(start);
  let renewedAt = await renewForAnother();
  one.run();
  // Longer than a whole attempt to get it.
  for (let end = Date.now() + 90_000; !log().includes("the primary lease is not held") && Date.now() < end; ) {
    renewedAt = await renewForAnother();
    expect(one.postgresProcesses()).toEqual([]);
    await sleep(500);
  }
  expect(log()).toContain("the primary lease is not held");
  expect(one.postgresProcesses()).toEqual([]);
  await one.ready(90_000);
  const spec = await leaseSpec();
  expect(spec["holderIdentity"]).toBe("lab-1");
  // Not before the lease has run out after its last change, and then by the next look; the rest is for a busy machine.
  const afterMs = Date.parse(String(spec["acquireTime"])) - renewedAt;
  expect(afterMs).toBeGreaterThanOrEqual(leaseDurationMs);
  expect(afterMs).toBeLessThan(leaseDurationMs + retryPeriodMs + 15_000);
  const [held, up] = [log().indexOf("Acquired the primary lease"), log().indexOf("database system is ready")];
  expect(held).toBeGreaterThan(0);
  expect(up).toBeGreaterThan(held);
}, 240_000);
