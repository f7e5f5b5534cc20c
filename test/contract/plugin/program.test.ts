import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { choosePort } from "../../../local/process/free-port.ts";
import { waitFor } from "../../../local/process/wait.ts";
import { resources } from "../../../src/kube/resources.ts";
import { createPluginPool } from "../../../src/rpc/pool.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { barmanPlugin } from "../../support/barman-cloud-objects.ts";
import { captureLogs } from "../../support/log-capture.ts";
import { startWorld, type World } from "../operator/world.ts";
import { buildPluginProgram, type PluginProgram, spawnSidecar } from "./sidecar-process.ts";

let world: World;
let program: PluginProgram;
let folder: string;
const children: ChildProcess[] = [];

beforeAll(async () => {
  [world, program] = await Promise.all([startWorld(), buildPluginProgram()]);
  folder = await mkdtemp(join(tmpdir(), "plugin-operator-"));
}, 180_000);
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await world?.stop();
  program?.remove();
  await rm(folder, { recursive: true, force: true });
});

/** Runs the program with flags; gives what it writes to standard error. */
function start(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [program.file, ...args], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH: process.env["PATH"] ?? "", ...env },
  });
  children.push(child);
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  return { child, ended, log: () => log };
}

test("the operator mode serves as a program, elects a leader, tells its health, and ends when it is told to", async () => {
  const namespace = "plugin-home";
  await world.api.create(resources.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  const [healthPort, metricsPort] = [await choosePort(), await choosePort()];
  const { child, ended, log } = start(
    [
      "operator",
      `--kubeconfig=${world.controlPlane.kubeconfig}`,
      `--plugin-path=${folder}`,
      `--health-probe-bind-address=127.0.0.1:${healthPort}`,
      "--leader-elect=true",
      "--debug",
      `--metrics-bind-address=127.0.0.1:${metricsPort}`,
      "--metrics-secure=false",
      "--log-level=debug",
    ],
    { SIDECAR_IMAGE: "sidecar:1", POD_NAMESPACE: namespace },
  );
  const health = (path: string) =>
    fetch(`http://127.0.0.1:${healthPort}${path}`).then(
      ({ status }) => status,
      () => 0,
    );
  await waitFor("it is ready", async () => (await health("/readyz")) === 200, {
    timeoutMs: 60_000,
    failure: () => (child.exitCode === null ? undefined : log()),
  });
  expect([await health("/healthz"), await health("/other")]).toEqual([200, 404]);
  const lease = () => world.api.get(resources.leases, { namespace, name: "822e3f5c.cnpg.io" });
  const leads = async () => Boolean((await lease().catch(() => undefined))?.spec?.holderIdentity);
  await waitFor("it leads", leads, { timeoutMs: 30_000 });
  const metrics = await fetch(`http://127.0.0.1:${metricsPort}/metrics`).then((answer) => answer.text());
  expect(metrics).toMatch(/^rest_client_requests_total\{.*code="200".*\} [1-9]/m);

  const pool = createPluginPool({ clock: systemClock, random: systemRandom, logger: captureLogs().logger });
  pool.replaceEndpoints("sockets", [{ kind: "socket", name: barmanPlugin, path: join(folder, barmanPlugin) }]);
  const session = await pool.load([barmanPlugin]);
  expect(session.get(barmanPlugin)?.metadata).toMatchObject({ name: barmanPlugin, license: "APACHE 2.0" });
  await pool.close({ graceMs: 100 });

  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
  expect(existsSync(join(folder, barmanPlugin))).toBe(false);
  expect((await lease()).spec?.holderIdentity ?? "").toBe("");
}, 120_000);

test("a sidecar tells its metrics, and does without where another has the port", async () => {
  const address = `127.0.0.1:${await choosePort()}`;
  const metrics = async () => {
    const answer = await fetch(`http://${address}/metrics`);
    return { code: answer.status, body: await answer.text() };
  };
  const sidecar = (name: string) => {
    const spool = join(folder, `${name}-spool`);
    const env = { NAMESPACE: "default", CLUSTER_NAME: "c", POD_NAME: name, SPOOL_DIRECTORY: spool };
    return spawnSidecar(program, world.controlPlane.kubeconfig, env, join(folder, name), address);
  };
  const first = await sidecar("c-1");
  const second = await sidecar("c-2").catch(async (error: unknown) => {
    await first.kill();
    throw error;
  });
  try {
    expect(await metrics()).toMatchObject({ code: 200, body: expect.stringContaining("process_cpu_seconds_total") });
    expect(second.plugin.metadata.displayName).toBe("BarmanCloudInstance");
    const says = async () => second.log().includes("There are no metrics of this process");
    await waitFor("the second says so", says, { timeoutMs: 30_000 });
    expect(first.log()).not.toContain("There are no metrics");
  } finally {
    await Promise.all([first.kill(), second.kill()]);
  }
}, 120_000);

test("each mode says which settings it lacks", async () => {
  const complaint = async (...args: string[]) => {
    const { ended, log } = start(args);
    const [code] = await ended;
    return { code, log: log() };
  };
  expect(await complaint("operator")).toMatchObject({
    code: 1,
    log: expect.stringContaining("SIDECAR_IMAGE is not set"),
  });
  const kubeconfig = `--kubeconfig=${world.controlPlane.kubeconfig}`;
  // As an ObjectStore's additionalContainerArgs may have it.
  expect(await complaint("instance", kubeconfig, "--pprof-server=0.0.0.0:6061")).toMatchObject({
    code: 1,
    log: expect.stringContaining("instance needs NAMESPACE, CLUSTER_NAME, POD_NAME, SPOOL_DIRECTORY"),
  });
  expect(await complaint("restore", kubeconfig)).toMatchObject({
    code: 1,
    log: expect.stringContaining("restore needs NAMESPACE, POD_NAME, SPOOL_DIRECTORY"),
  });
  expect(await complaint("unknown")).toMatchObject({ code: 1, log: expect.stringContaining("unknown command") });
});
