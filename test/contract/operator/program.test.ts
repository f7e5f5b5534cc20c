import { readFileSync } from "node:fs";
import { request } from "node:https";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { choosePort } from "../../../local/process/free-port.ts";
import { waitFor } from "../../../local/process/wait.ts";
import { resources } from "../../../src/kube/resources.ts";
import { holdProfiler, takeBusyProfile, takeHeapProfile } from "../../support/profiles.ts";
import { type Installation, installOperator } from "./least-privilege.ts";
import { buildOperatorProgram, type OperatorProcess, type OperatorProgram } from "./operator-process.ts";
import { installPodMonitors } from "./pod-monitor-crd.ts";
import { openScene, type Scene, startWorld, type World } from "./world.ts";

let world: World;
let scene: Scene;
let program: OperatorProgram;
let operator: OperatorProcess;
let installation: Installation;

beforeAll(async () => {
  world = await startWorld();
  scene = await openScene(world);
  program = await buildOperatorProgram(world);
  installation = await installOperator(world);
  operator = await startProgram();
  await waitFor("the operator is ready", async () => (await ready(operator.webhookPort)) === 200, {
    timeoutMs: 60_000,
  });
});

afterAll(async () => {
  await operator?.stop();
  program?.remove();
  installation?.remove();
  await scene?.stop();
  await world?.stop();
});

function startProgram(): Promise<OperatorProcess> {
  return program.start({
    env: { OPERATOR_NAMESPACE: installation.namespace },
    kubeconfig: installation.kubeconfig,
  });
}

function ready(port: number): Promise<number> {
  return call(port, "GET", "/readyz").then(
    (it) => it.status,
    () => 0,
  );
}

function call(
  port: number,
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; body: string; certificate: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: "127.0.0.1", port, method, path, rejectUnauthorized: false, agent: false },
      (answer) => {
        const socket = answer.socket as import("node:tls").TLSSocket;
        const certificate = socket.getPeerCertificate().subjectaltname ?? "";
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (chunk: string) => {
          text += chunk;
        });
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body: text, certificate }));
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body ? JSON.stringify(body) : undefined);
  });
}

async function review(
  path: string,
  fields: object,
): Promise<{ allowed: boolean; patch?: string; status?: { message: string } }> {
  const { body } = await call(operator.webhookPort, "POST", path, { request: { uid: "u", ...fields } });
  return (JSON.parse(body) as { response: { allowed: boolean; patch?: string; status?: { message: string } } })
    .response;
}

const cluster = (spec: object) => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: { name: "w", namespace: "default" },
  spec: { instances: 1, storage: { size: "1Gi" }, ...spec },
});

/** One cluster with all that surrounds one, on a node that is drained, and its end. */
async function useEverything(): Promise<void> {
  const { namespace } = scene;
  await installPodMonitors(world);
  await world.api.create(resources.nodes, { apiVersion: "v1", kind: "Node", metadata: { name: "node-1" } });
  await world.api.create(resources.imageCatalogs, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "ImageCatalog",
    metadata: { namespace, name: "cat" },
    spec: { images: [{ major: 17, image: "example.org/postgresql:17.2" }] },
  });
  const serviceTemplate = { metadata: { name: "e-extra" }, spec: {} };
  await world.api.create(resources.clusters, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Cluster",
    metadata: { namespace, name: "e" },
    spec: {
      instances: 2,
      storage: { size: "1Gi" },
      walStorage: { size: "1Gi" },
      imageCatalogRef: { apiGroup: "postgresql.cnpg.io", kind: "ImageCatalog", name: "cat", major: 17 },
      monitoring: { enablePodMonitor: true },
      managed: { services: { additional: [{ selectorType: "rw", serviceTemplate }] } },
      postgresql: { synchronous: { method: "any", number: 1, failoverQuorum: true } },
    },
  });
  await scene.waitHealthy("e", 2);
  await expect.poll(() => scene.find(resources.podMonitors, "e"), { timeout: 60_000 }).toBeDefined();
  expect(await scene.find(resources.failoverQuorums, "e")).toBeDefined();
  await scene.patchSpec("e", { monitoring: { enablePodMonitor: false }, managed: null, enablePDB: false });
  await expect.poll(() => scene.find(resources.podMonitors, "e"), { timeout: 60_000 }).toBeUndefined();
  const nodePatch = { type: "merge" as const, body: { spec: { unschedulable: true } } };
  await world.api.patch(resources.nodes, { name: "node-1" }, nodePatch);
  await world.api.create(resources.databases, {
    apiVersion: "postgresql.cnpg.io/v1",
    kind: "Database",
    metadata: { namespace, name: "d", finalizers: ["cnpg.io/deleteDatabase"] },
    spec: { cluster: { name: "e" }, name: "d", owner: "app" },
  });
  await world.api.delete(resources.clusters, { namespace, name: "e" });
  await expect
    .poll(async () => (await scene.find(resources.databases, "d"))?.metadata.finalizers, { timeout: 20_000 })
    .toBeUndefined();
}

/** What dashboards and alerts of operators in general look at. */
const metricNames = [
  "controller_runtime_reconcile_total",
  "controller_runtime_reconcile_errors_total",
  "controller_runtime_reconcile_time_seconds",
  "controller_runtime_active_workers",
  "controller_runtime_max_concurrent_reconciles",
  "workqueue_depth",
  "workqueue_adds_total",
  "workqueue_retries_total",
  "workqueue_queue_duration_seconds",
  "workqueue_work_duration_seconds",
  "workqueue_unfinished_work_seconds",
  "workqueue_longest_running_processor_seconds",
  "controller_runtime_terminal_reconcile_errors_total",
  "controller_runtime_reconcile_panics_total",
  "controller_runtime_webhook_requests_total",
  "controller_runtime_webhook_requests_in_flight",
  "controller_runtime_webhook_latency_seconds",
  "certwatcher_read_certificate_total",
  "certwatcher_read_certificate_errors_total",
  "process_cpu_seconds_total",
  "process_resident_memory_bytes",
  "nodejs_eventloop_lag_seconds",
  "nodejs_heap_size_used_bytes",
  "nodejs_heap_size_total_bytes",
  "nodejs_active_resources_total",
];

describe("the program", () => {
  it("serves /readyz with a certificate for its Service and tells it to both webhook configurations", async () => {
    const answer = await call(operator.webhookPort, "GET", "/readyz");
    expect(answer).toMatchObject({ status: 200, body: "OK" });
    expect(answer.certificate).toBe(`DNS:cnpg-webhook-service.${installation.namespace}.svc`);
    const secret = await world.api.get(resources.secrets, {
      namespace: installation.namespace,
      name: "cnpg-webhook-cert",
    });
    const name = "cnpg-validating-webhook-configuration";
    const configuration = await world.api.get(resources.validatingWebhookConfigurations, { name });
    for (const webhook of configuration.webhooks ?? []) {
      expect(webhook.clientConfig.caBundle).toBe(secret.data?.["tls.crt"]);
    }
  });

  it("fills in defaults by its mutating webhook", async () => {
    const answer = await review("/mutate-postgresql-cnpg-io-v1-cluster", { operation: "CREATE", object: cluster({}) });
    expect(answer.allowed).toBe(true);
    const operations = JSON.parse(Buffer.from(answer.patch ?? "", "base64").toString("utf8")) as { path: string }[];
    expect(operations.map((it) => it.path)).toContain("/spec/bootstrap");
  });

  it("refuses an invalid cluster by its validating webhook, naming the field", async () => {
    const path = "/validate-postgresql-cnpg-io-v1-cluster";
    const bad = await review(path, { operation: "CREATE", object: cluster({ storage: { size: "much" } }) });
    expect(bad.allowed).toBe(false);
    expect(bad.status?.message).toContain("spec.storage.size");
    expect((await review(path, { operation: "CREATE", object: cluster({}) })).allowed).toBe(true);
    const shrunk = await review(path, {
      operation: "UPDATE",
      object: cluster({ storage: { size: "1Gi" } }),
      oldObject: cluster({ storage: { size: "2Gi" } }),
    });
    expect(shrunk.status?.message).toContain("can't shrink existing storage");
  });

  it("serves its metrics", async () => {
    const answer = await fetch(`http://127.0.0.1:${operator.metricsPort}/metrics`);
    const text = await answer.text();
    for (const name of metricNames) expect(text, name).toMatch(new RegExp(`^# TYPE ${name} `, "m"));
    expect(text).toMatch(/^controller_runtime_max_concurrent_reconciles\{controller="cluster"\} 10$/m);
    const path = "/validate-postgresql-cnpg-io-v1-cluster";
    expect(text).toMatch(
      new RegExp(`^controller_runtime_webhook_requests_total{webhook="${path}",code="200"} 3$`, "m"),
    );
    const { host } = new URL(world.controlPlane.url);
    const list = `rest_client_requests_total{method="GET",host="${host}",code="200"}`;
    expect(
      Number(
        text
          .split("\n")
          .find((it) => it.startsWith(list))
          ?.slice(list.length),
      ),
    ).toBeGreaterThan(10);
    // Elected once the caches were full, which readiness did not wait for.
    const leads = async () => (await fetch(`http://127.0.0.1:${operator.metricsPort}/metrics`)).text();
    await expect
      .poll(leads, { timeout: 20_000 })
      .toMatch(/^leader_election_master_status\{name="db9c8771\.cnpg\.io"\} 1$/m);
  });

  it("stays below 110 MB with a cluster", async () => {
    await scene.create("m");
    await scene.waitHealthy("m", 3);
    const status = readFileSync(`/proc/${operator.pid}/status`, "utf8");
    const residentKb = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]);
    expect(residentKb).toBeGreaterThan(0);
    expect(residentKb / 1024).toBeLessThan(110);
  });

  it("needs no right that its role does not give: failover, scaling, volumes, sleep, removal", async () => {
    const namespace = scene.namespace;
    await scene.node.killPod("m-1");
    await scene.waitStatus("m", "a new primary", (it) => it.currentPrimary !== "m-1");
    await scene.waitHealthy("m", 3);
    await scene.patchSpec("m", { storage: { size: "2Gi" }, enableSuperuserAccess: true, instances: 2 });
    await scene.waitHealthy("m", 2);
    await scene.annotate("m", { "cnpg.io/hibernation": "on" });
    await scene.waitStatus("m", "sleep", (it) => it.readyInstances === 0);
    await scene.annotate("m", { "cnpg.io/hibernation": "off" });
    await scene.waitHealthy("m", 2);
    await world.api.delete(resources.leases, { namespace, name: "m" });
    await expect.poll(() => scene.find(resources.leases, "m"), { timeout: 20_000 }).toBeDefined();
    await useEverything();
    // The one refusal is of a volume that its missing storage class cannot grow, and it stands in nobody's way.
    const refusals = operator
      .log()
      .split("\n")
      .filter((it) => /forbidden/i.test(it));
    expect(refusals.filter((it) => !it.includes("is to grow"))).toEqual([]);
    await expect
      .poll(async () => (await scene.events()).map((it) => it.reason), { timeout: 20_000 })
      .toContain("VolumeCannotGrow");
    const leader = await world.api.get(resources.leases, {
      namespace: installation.namespace,
      name: "db9c8771.cnpg.io",
    });
    expect(leader.spec?.holderIdentity).toBeTruthy();
  });

  it("goes on after the API server was away", async () => {
    const before = (await scene.cluster("m")).status?.currentPrimary;
    await world.controlPlane.stopApiServer();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await world.controlPlane.startApiServer();
    // A leader that could not renew its Lease in time ends, and the kubelet starts it again.
    const outcome = await Promise.race([
      operator.ended,
      new Promise((resolve) => setTimeout(resolve, 3_000, "running")),
    ]);
    if (outcome !== "running") {
      expect(operator.log()).toContain("leadership");
      operator = await startProgram();
    }
    await scene.patchSpec("m", { instances: 3 });
    await scene.waitHealthy("m", 3, 90_000);
    expect((await scene.cluster("m")).status?.currentPrimary).toBe(before);
  }, 150_000);

  it("ends by itself on SIGTERM", async () => {
    await operator.stop();
    expect(await operator.ended).toBe(0);
  });

  it("gives profiles of itself when it is told to, and ends without waiting for one", async () => {
    const port = await choosePort();
    operator = await program.start({
      namespace: "none",
      env: { OPERATOR_NAMESPACE: installation.namespace, CNPG_TS_PPROF_PORT: String(port) },
      kubeconfig: installation.kubeconfig,
      flags: ["--pprof-server"],
    });
    await waitFor("the operator is ready", async () => (await ready(operator.webhookPort)) === 200, {
      timeoutMs: 60_000,
    });
    const cpu = await takeBusyProfile(port, 1);
    expect(cpu.totals["cpu/nanoseconds"]).toBeGreaterThan(0);
    expect(cpu.functions.some((it) => it.endsWith("operator.cjs"))).toBe(true);
    expect((await takeHeapProfile(port)).totals["inuse_space/bytes"]).toBeGreaterThan(100_000);
    const held = holdProfiler(port, new AbortController().signal);
    await expect.poll(held.ask, { timeout: 30_000 }).toBe(409);
    await operator.stop();
    expect(await operator.ended).toBe(0);
    await held.ended;
  });
});
