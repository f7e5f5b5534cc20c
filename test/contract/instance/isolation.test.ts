import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiProxy, proxyApiServer } from "./api-proxy.ts";
import { bootPrimary, bootStandby } from "./boot.ts";
import { Lab, type LabInstance, until } from "./lab.ts";
import { SwitchProxy } from "./switch-proxy.ts";

const names = ["lab-1", "lab-2", "lab-3"];
/** Longer than a right to write and a lease together. */
const outageMs = 30_000;

let lab: Lab;
let one: LabInstance;
let two: LabInstance;
const api = new Map<string, ApiProxy>();
/** Rows that were acknowledged. */
let written = 0;
/** The lines from the first primary to its peers. */
const peers = new Map<string, SwitchProxy>();

/** An instance whose way to the API server, and to its peers, can be cut. */
async function keep(instance: LabInstance): Promise<void> {
  const { name } = instance;
  const way = await proxyApiServer(lab, name);
  api.set(name, way);
  const addresses = await Promise.all(
    names
      .filter((other) => other !== name)
      .map(async (other) => {
        const target = (await lab.instance(other)).ports.status;
        if (name !== "lab-1") return `${other}=127.0.0.1:${target}`;
        const line = await SwitchProxy.start();
        line.target = target;
        peers.set(other, line);
        return `${other}=127.0.0.1:${line.port}`;
      }),
  );
  const environment = { KUBECONFIG: way.kubeconfig, CNPG_TS_PEER_ADDRESSES: addresses.join(",") };
  instance.keep({ launcher: true, environment });
}

function cutApi(on: readonly string[], isCut: boolean): void {
  for (const name of on) {
    const way = api.get(name);
    if (isCut) way?.cut();
    else way?.restore();
  }
}

function cutPeers(isCut: boolean): void {
  for (const [name, line] of peers) {
    if (isCut) line.cut();
    else void lab.instance(name).then(({ ports }) => (line.target = ports.status));
  }
}

async function holder(): Promise<unknown> {
  return (await lab.lease()).spec["holderIdentity"];
}

beforeAll(async () => {
  lab = await Lab.start({ instances: 3 });
  [one, two] = [await lab.instance("lab-1"), await lab.instance("lab-2")];
  await bootPrimary(lab, one, { start: keep });
  for (const name of ["lab-2", "lab-3"]) await bootStandby(await lab.instance(name), keep);
  await until("every instance is a voter", async () => {
    const text = (await lab.lease()).metadata.annotations?.["cnpg-ts.dev/voters"] ?? "";
    return names.every((name) => text.includes(name));
  });
  one.psql("CREATE TABLE written (x int)");
});

afterAll(async () => {
  await lab?.stop();
  await Promise.all([...api.values(), ...peers.values()].map((proxy) => proxy.close()));
});

test("with the API server away from everybody, writes go on by the promises of the peers", async () => {
  const postmaster = one.psql("SELECT pg_postmaster_start_time()");
  cutApi(names, true);
  const end = Date.now() + outageMs;
  for (; Date.now() < end; written += 1) {
    one.psql(`INSERT INTO written VALUES (${written})`);
    await sleep(200);
  }
  expect(one.output).toContain("every voter promised to leave it alone");
  expect((await two.status()).cnpgTs?.grant?.holder).toBe("lab-1");
  cutApi(names, false);
  const before = (await lab.lease()).spec["renewTime"];
  await until("the lease is renewed again", async () => (await lab.lease()).spec["renewTime"] !== before);
  expect(one.psql("SELECT pg_postmaster_start_time()")).toBe(postmaster);
}, 120_000);

test("nobody without the certificate of an instance gets a promise", async () => {
  expect((await two.get("/cnpg-ts/promise")).status).toBe(405);
  const post = await two.get("/cnpg-ts/promise", { method: "POST" });
  expect(post.status).toBe(401);
  expect((await two.get("/cnpg-ts/promise", { method: "POST", operator: true })).status).toBe(403);
});

test("a manager that stands still is killed with its PostgreSQL, and comes back as what it was", async () => {
  const session = one.session("SELECT pg_sleep(600)");
  const dead = new Promise<number>((resolve) => session.on("exit", () => resolve(Date.now())));
  await until(
    "the session runs",
    async () => Number(one.psql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(6%'")) > 0,
  );
  const stopped = Date.now();
  one.signalRuntime("SIGSTOP");
  expect((await dead) - stopped).toBeLessThan(12_000);
  // The launcher kills first and tells of it then.
  await until("the launcher tells", async () => one.output.includes("the deadline has passed"));
  await one.ready(60_000);
  expect(await holder()).toBe("lab-1");
}, 120_000);

test("a primary that is cut off from everything is silent before its successor begins", async () => {
  const session = one.session("SELECT pg_sleep(600)");
  const dead = new Promise<number>((resolve) => session.on("exit", () => resolve(Date.now())));
  await until(
    "the session runs",
    async () => Number(one.psql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(6%'")) > 0,
  );
  const cutAt = Date.now();
  cutApi(["lab-1"], true);
  cutPeers(true);
  lab.proxy.cut();
  await lab.patchStatus({ targetPrimary: "lab-2" });
  const deadAt = await dead;
  expect(deadAt - cutAt).toBeLessThan(12_000);
  expect(await holder()).toBe("lab-1");
  expect(one.output).toContain("The right to write ends");
  await until("the successor", async () => (await lab.cluster()).status?.currentPrimary === "lab-2", 60_000);
  lab.route(two);
  expect(two.psql("SELECT count(*) FROM written")).toBe(String(written));
  cutApi(["lab-1"], false);
  cutPeers(false);
  await until("the old primary follows", async () => (await one.status()).isPrimary === false, 90_000);
}, 240_000);
