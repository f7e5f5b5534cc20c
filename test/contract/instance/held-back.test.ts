// A definition that came past the webhooks, while no operator is there to put it right: on a real server and a real API server.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import { applyDefaults } from "../../../src/schema/admission/defaults.ts";
import { bootPrimary } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";

let lab: Lab;
let one: LabInstance;

const admission = {
  defaultPostgresImage: "localhost/postgresql:15",
  monitoringQueriesConfigMap: "",
  monitoringQueriesSecret: "",
  includePlugins: [],
};

/** What the operator's webhook would make of the definition. */
async function writeDefaults(): Promise<void> {
  const cluster = await lab.cluster();
  const { spec } = applyDefaults(cluster, { mode: "enforce", settings: admission });
  await lab.patchCluster({ spec });
}

const setParameters = (parameters: Record<string, string | null>) =>
  lab.patchCluster({ spec: { postgresql: { parameters } } });
const fence = (names: string | null) =>
  lab.patchCluster({ metadata: { annotations: { "cnpg.io/fencedInstances": names } } });
const heldBack = () => one.output.match(/came past the webhooks/g)?.length ?? 0;
const admittedAgain = () => one.output.match(/is admitted again/g)?.length ?? 0;
const onDisk = () => ["custom.conf", "pg_hba.conf"].map((name) => readFileSync(join(one.pgData, name), "utf8"));

beforeAll(async () => {
  lab = await Lab.start();
  one = await lab.instance("lab-1");
  await bootPrimary(lab, one, { checksums: false });
  await until("current primary", async () => (await lab.cluster()).status?.currentPrimary === "lab-1");
});

afterAll(() => lab?.stop());

/** The operator that works on the cluster has this instance manager to send, or another one. */
async function operatorSends(hash: string): Promise<void> {
  const { instanceArch } = await one.status();
  const status: Cluster["status"] = { availableArchitectures: [{ goArch: instanceArch, hash }] };
  await lab.patchStatus(status);
}

test("an operator of other rules decides by itself: what it left without defaults is acted by", async () => {
  await operatorSends("of another release");
  await setParameters({ work_mem: "7MB" });
  await until("work_mem", async () => one.psql("SHOW work_mem") === "7MB");
  expect(heldBack()).toBe(0);
});

test("under an operator of the same rules nothing goes by a definition without defaults until they are written", async () => {
  await operatorSends((await one.status()).executableHash);
  await until("held back", async () => heldBack() === 1);
  const before = onDisk();
  const serial = await one.peerSerial();
  await setParameters({ work_mem: "8MB" });
  await lab.renewServerCertificate();
  await lab.patchStatus({ secretsResourceVersion: { serverSecretVersion: "renewed" } });
  // The pass that looks at the certificate has seen the parameter as well.
  await until("the new certificate is served", async () => (await one.peerSerial()) !== serial);
  expect(onDisk()).toEqual(before);
  expect(one.psql("SHOW work_mem")).toBe("7MB");
  await writeDefaults();
  await until("work_mem", async () => one.psql("SHOW work_mem") === "8MB");
  expect(admittedAgain()).toBe(1);
});

test("a setting that nobody may choose reaches neither the files nor PostgreSQL, the lease is kept, a fence goes on", async () => {
  const before = onDisk();
  const told = heldBack();
  const renewed = (await lab.lease()).spec["renewTime"];
  await setParameters({ work_mem: "9MB", archive_command: "true" });
  await until("held back", async () => heldBack() === told + 1);
  expect(one.output).toMatch(/came past the webhooks.*spec\.postgresql\.parameters\.archive_command/);
  await until("the lease is renewed", async () => (await lab.lease()).spec["renewTime"] !== renewed);
  expect(await one.get("/readyz")).toEqual({ status: 200, body: "OK" });
  await fence('["lab-1"]');
  await until("down", async () => one.postgresProcesses().length === 0);
  expect(onDisk()).toEqual(before);
  // It was not told again, however many passes there were.
  expect(heldBack()).toBe(told + 1);
  await fence(null);
  await setParameters({ archive_command: null });
  await one.ready(90_000);
  expect(one.psql("SHOW work_mem")).toBe("9MB");
}, 120_000);

test("after a start that failed once a fence was lifted, fences are followed as before", async () => {
  one.signal("SIGTERM");
  await one.exit;
  one.keep();
  await one.ready(60_000);
  const file = join(one.pgData, "postgresql.conf");
  const good = readFileSync(file, "utf8");
  const down = () => until("down", async () => one.postgresProcesses().length === 0, 60_000);
  await fence('["lab-1"]');
  await down();
  writeFileSync(file, `${good}\nno_such_setting = on\n`);
  const start = one.output.length;
  await fence(null);
  await until("the start failed", async () => one.output.indexOf("no_such_setting", start) > 0, 60_000);
  await fence('["lab-1"]');
  await until("fenced while it is broken", async () => (await one.status()).mightBeUnavailable === true, 60_000);
  writeFileSync(file, good);
  await fence(null);
  await one.ready(60_000);
  await fence('["lab-1"]');
  await down();
  await fence(null);
  await one.ready(60_000);
  expect(one.psql("SHOW work_mem")).toBe("9MB");
}, 240_000);
