import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiProxy, proxyApiServer } from "./api-proxy.ts";
import { bootPrimary, bootStandby } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

const names = ["lab-1", "lab-2"];
/** PostgreSQL is stopped after 70 % of that without a right that was proved anew, in seconds. */
const renewDeadlineSeconds = 24;

let lab: Lab;
let one: LabInstance;
let two: LabInstance;
/** The way of both to the API server. */
let api: ApiProxy;

beforeAll(async () => {
  const primaryLease = { leaseDurationSeconds: 36, renewDeadlineSeconds, retryPeriodSeconds: 2 };
  lab = await Lab.start({ instances: 2, spec: { primaryLease } });
  api = await proxyApiServer(lab, "instances");
  [one, two] = [await lab.instance("lab-1"), await lab.instance("lab-2")];
  const ports = names.map((name, index) => `${name}=127.0.0.1:${[one, two][index]?.ports.status}`);
  const environment = { KUBECONFIG: api.kubeconfig, CNPG_TS_PEER_ADDRESSES: ports.join(",") };
  const start = (it: LabInstance) => it.run({ launcher: true, environment });
  await bootPrimary(lab, one, { start });
  await bootStandby(two, start);
  await until("both are voters", async () => {
    const voters = (await lab.lease()).metadata.annotations?.["cnpg-ts.dev/voters"] ?? "";
    return names.every((name) => voters.includes(name));
  });
});

afterAll(async () => {
  await lab?.stop();
  await api?.close();
});

test("a runtime that comes up while the API server is away asks the voters that the one before it knew", async () => {
  const postmaster = one.psql("SELECT pg_postmaster_start_time()");
  const { sessionID } = await one.status();
  api.cut();
  await until("the voters are asked", async () => one.output.includes("every voter promised to leave it alone"));
  const asked = one.output.split("every voter promised to leave it alone").length;
  one.killRuntime();
  await until("another runtime", async () => (await one.status()).sessionID !== sessionID);
  await until(
    "the new one asks too",
    async () => one.output.split("every voter promised to leave it alone").length > asked,
  );
  // Longer than what was left of the right.
  await sleep(renewDeadlineSeconds * 1_000);
  expect(one.psql("SELECT pg_postmaster_start_time()")).toBe(postmaster);
  expect((await two.status()).cnpgTs?.grant?.holder).toBe("lab-1");
  const before = (await lab.lease()).spec["renewTime"];
  api.restore();
  await until("the lease is renewed again", async () => (await lab.lease()).spec["renewTime"] !== before);
  expect(one.psql("SELECT pg_postmaster_start_time()")).toBe(postmaster);
}, 180_000);
