import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Plugin, PluginError } from "../../../src/ports/plugin.ts";
import { buildGoPeer, type GoPeer, type GoProgram, startGoPeer } from "./go-peer.ts";
import { createLab, type Lab, pluginName, type Transport } from "./lab.ts";
import { backup, cluster, pod, seenCluster } from "./recording-plugin.ts";

let program: GoProgram;
let lab: Lab;
let peer: GoPeer | undefined;
beforeAll(async () => {
  program = await buildGoPeer();
});
afterAll(() => program.remove());
beforeEach(async () => {
  lab = await createLab();
});
afterEach(async () => {
  await lab.end();
  await peer?.stop();
});

const json = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64");

const services = ["OPERATOR_SERVICE", "WAL_SERVICE", "BACKUP_SERVICE", "LIFECYCLE_SERVICE", "RECONCILER_HOOKS"];
const further = ["RESTORE_JOB", "POSTGRES", "METRICS", "INSTANCE_SIDECAR_INJECTION"];

const identity = {
  "/cnpgi.identity.v1.Identity/GetPluginMetadata": { response: { name: pluginName, version: "9" } },
  "/cnpgi.identity.v1.Identity/Probe": { response: { ready: true } },
};

/** What the Go server answers: each service with one or more capabilities, and an answer for each call. */
const answers = {
  ...identity,
  "/cnpgi.identity.v1.Identity/GetPluginCapabilities": {
    response: { capabilities: [...services, ...further].map((name) => ({ service: { type: `TYPE_${name}` } })) },
  },
  "/cnpgi.operator.v1.Operator/GetCapabilities": {
    response: { capabilities: [1, 2, 3, 5, 6].map((type) => ({ rpc: { type } })) },
  },
  "/cnpgi.operator_lifecycle.v1.OperatorLifecycle/GetCapabilities": {
    response: { lifecycleCapabilities: [{ kind: "Pod", operationTypes: [{ type: "TYPE_DELETE" }] }] },
  },
  "/cnpgi.wal.v1.WAL/GetCapabilities": {
    response: { capabilities: [1, 2, 3, 4].map((type) => ({ rpc: { type } })) },
  },
  "/cnpgi.backup.v1.Backup/GetCapabilities": { response: { capabilities: [{ rpc: { type: 1 } }] } },
  "/cnpgi.reconciler.v1.ReconcilerHooks/GetCapabilities": {
    response: { reconcilerCapabilities: [{ kind: "KIND_CLUSTER" }, { kind: "KIND_BACKUP" }] },
  },
  "/cnpgi.wal.v1.RestoreJobHooks/GetCapabilities": { response: { capabilities: [{ kind: "KIND_RESTORE" }] } },
  "/cnpgi.identity.v1.Postgres/GetCapabilities": { response: { capabilities: [{ rpc: { type: 1 } }] } },
  "/cnpgi.metrics.v1.Metrics/GetCapabilities": { response: { capabilities: [{ rpc: { type: 1 } }] } },
  "/cnpgi.operator.v1.Operator/ValidateClusterCreate": {
    response: { validationErrors: [{ pathComponents: ["spec"], value: "v", message: "m" }] },
  },
  "/cnpgi.operator.v1.Operator/ValidateClusterChange": { response: {} },
  "/cnpgi.operator.v1.Operator/MutateCluster": { response: { jsonPatch: json([]) } },
  "/cnpgi.operator.v1.Operator/SetStatusInCluster": { response: { jsonStatus: json({ a: 1 }) } },
  "/cnpgi.operator.v1.Operator/Deregister": { response: {} },
  "/cnpgi.operator_lifecycle.v1.OperatorLifecycle/LifecycleHook": { response: {} },
  "/cnpgi.reconciler.v1.ReconcilerHooks/Pre": { response: { behavior: "BEHAVIOR_REQUEUE", requeueAfter: "7" } },
  "/cnpgi.reconciler.v1.ReconcilerHooks/Post": { response: { behavior: 99 } },
  "/cnpgi.wal.v1.WAL/Archive": { response: {} },
  "/cnpgi.wal.v1.WAL/Restore": { code: 11, message: "end of WAL" },
  "/cnpgi.wal.v1.WAL/Status": { response: { firstWal: "A", lastWal: "B", additionalInformation: { k: "v" } } },
  "/cnpgi.wal.v1.WAL/SetFirstRequired": { code: 2, message: "panic caught: not implemented" },
  "/cnpgi.backup.v1.Backup/Backup": { response: { backupId: "i", stoppedAt: "1700000000", online: true } },
  "/cnpgi.wal.v1.RestoreJobHooks/Restore": { response: { restoreConfig: "x", envs: ["A=B"] } },
  "/cnpgi.identity.v1.Postgres/EnrichConfiguration": { response: { configs: { a: "c" } } },
  "/cnpgi.metrics.v1.Metrics/Define": {
    response: { metrics: [{ fqName: "m", valueType: { type: "TYPE_COUNTER" } }] },
  },
  "/cnpgi.metrics.v1.Metrics/Collect": { response: { metrics: [{ fqName: "m", value: 2 }] } },
};

async function serve(transport: Transport, canned: object): Promise<{ go: GoPeer; load: () => Promise<Plugin> }> {
  const file = (name: string) => join(lab.folder, name);
  const flags: Record<string, string> = { answers: JSON.stringify(canned) };
  if (transport === "socket") flags["address"] = `unix://${file(pluginName)}`;
  else {
    await lab.writeFiles();
    await writeFile(file("client.key"), lab.client.key);
    Object.assign(flags, {
      address: "127.0.0.1:0",
      cert: file("server.crt"),
      key: file("server.key"),
      peer: file("client.crt"),
    });
  }
  const go = startGoPeer(program, "server", flags);
  peer = go;
  const { address } = await go.next<{ address: string }>();
  const endpoint =
    transport === "socket"
      ? ({ kind: "socket", name: pluginName, path: file(pluginName) } as const)
      : lab.tlsEndpoint(address);
  return { go, load: () => lab.load(endpoint) };
}

describe.each<Transport>(["socket", "tls"])("our client of a Go server over %s", (transport) => {
  it("loads in the order of Go clients, and makes every call", async () => {
    const { go, load } = await serve(transport, answers);
    const plugin = await load();
    const order: string[] = [];
    for (let count = 0; count < 11; count++) order.push((await go.next<{ method: string }>()).method);
    expect(order).toEqual([
      "/cnpgi.identity.v1.Identity/GetPluginMetadata",
      "/cnpgi.identity.v1.Identity/GetPluginCapabilities",
      "/cnpgi.operator.v1.Operator/GetCapabilities",
      "/cnpgi.operator_lifecycle.v1.OperatorLifecycle/GetCapabilities",
      "/cnpgi.wal.v1.WAL/GetCapabilities",
      "/cnpgi.backup.v1.Backup/GetCapabilities",
      "/cnpgi.reconciler.v1.ReconcilerHooks/GetCapabilities",
      "/cnpgi.wal.v1.RestoreJobHooks/GetCapabilities",
      "/cnpgi.identity.v1.Postgres/GetCapabilities",
      "/cnpgi.metrics.v1.Metrics/GetCapabilities",
      "/cnpgi.identity.v1.Identity/Probe",
    ]);
    expect(plugin.capabilities.operator).toContain("TYPE_SET_STATUS_IN_CLUSTER");
    expect(plugin.capabilities.lifecycle).toEqual([{ group: "", kind: "Pod", operations: ["delete"] }]);

    const seen = async () => (await go.next<{ request: Record<string, string> }>()).request;
    const definition = json(seenCluster);
    expect(await plugin.operator.validateClusterCreate(cluster)).toEqual([
      { path: ["spec"], value: "v", message: "m" },
    ]);
    expect(JSON.parse(Buffer.from((await seen())["definition"] ?? "", "base64").toString())).toEqual(seenCluster);
    expect(await plugin.operator.validateClusterChange({ before: cluster, after: cluster })).toEqual([]);
    expect(Object.keys(await seen())).toEqual(["oldCluster", "newCluster"]);
    expect(Buffer.from(await plugin.operator.mutateCluster(cluster)).toString()).toBe("[]");
    await seen();
    expect(await plugin.operator.setStatusInCluster(cluster)).toBe('{"a":1}');
    await seen();
    await plugin.operator.deregister(cluster);
    await seen();
    expect(await plugin.lifecycle.hook({ operation: "delete", cluster, object: pod })).toHaveLength(0);
    expect(await seen()).toMatchObject({ operationType: { type: "TYPE_DELETE" }, objectDefinition: json(pod) });
    expect(await plugin.reconciler.pre({ cluster, resource: backup })).toEqual({
      behavior: "requeue",
      requeueAfterSeconds: 7,
    });
    expect(await seen()).toMatchObject({ resourceDefinition: json(backup) });
    // A number that this version does not know goes on.
    expect(await plugin.reconciler.post({ cluster, resource: cluster })).toMatchObject({ behavior: "continue" });
    const post = await seen();
    expect(post["resourceDefinition"]).toBe(post["clusterDefinition"]);
    expect(Buffer.from(post["clusterDefinition"] ?? "", "base64")).toHaveLength(
      Buffer.from(definition, "base64").length,
    );
    await plugin.wal.archive({ cluster, sourceFileName: "/p/1", checkEmptyWalArchive: false });
    expect(await seen()).toMatchObject({ sourceFileName: "/p/1", checkEmptyWalArchive: false });
    const miss = await plugin.wal
      .restore({ cluster, sourceWalName: "W", destinationFileName: "/d" })
      .catch((error: PluginError) => error);
    expect(miss).toMatchObject({ kind: "notFound", status: "OUT_OF_RANGE" });
    expect(await seen()).toMatchObject({ sourceWalName: "W", mode: "MODE_RECOVERY" });
    expect(await plugin.wal.status(cluster)).toMatchObject({ firstWal: "A", lastWal: "B" });
    await seen();
    const panicked = plugin.wal.setFirstRequired({ cluster, firstRequiredWal: "W" });
    await expect(panicked).rejects.toMatchObject({ kind: "unavailable", status: "UNKNOWN" });
    await seen();
    const result = await plugin.backup.backup({ cluster, backup, parameters: { p: "q" } });
    expect(result).toMatchObject({ backupId: "i", stoppedAt: 1_700_000_000_000, online: true });
    expect(result.startedAt).toBeUndefined();
    expect(await seen()).toMatchObject({ parameters: { p: "q" }, backupDefinition: json(backup) });
    expect(await plugin.restoreJob.restore({ cluster })).toEqual({ restoreConfig: "x", envs: ["A=B"] });
    expect(await seen()).not.toHaveProperty("checkEmptyWalArchive");
    expect(await plugin.postgres.enrichConfiguration({ cluster, configs: { a: "b" }, operation: "reconcile" })).toEqual(
      { a: "c" },
    );
    expect(await seen()).toMatchObject({ configs: { a: "b" }, operationType: { type: "TYPE_RECONCILE" } });
    expect(await plugin.metrics.define(cluster)).toMatchObject([{ name: "m", type: "counter" }]);
    await seen();
    expect(await plugin.metrics.collect(cluster)).toEqual([{ name: "m", value: 2, variableLabels: [] }]);
  });

  it("reports a plugin that claims what it does not serve", async () => {
    const claims = { response: { capabilities: [{ service: { type: "TYPE_BACKUP_SERVICE" } }] } };
    const { load } = await serve(transport, {
      ...identity,
      "/cnpgi.identity.v1.Identity/GetPluginCapabilities": claims,
    });
    await expect(load()).rejects.toMatchObject({ kind: "refused", status: "UNIMPLEMENTED" });
  });
});

describe("a Go server that breaks the protocol", () => {
  it.each([
    ["a service without its member", "/cnpgi.identity.v1.Identity/GetPluginCapabilities", { capabilities: [{}] }],
    ["an rpc without its member", "/cnpgi.wal.v1.WAL/GetCapabilities", { capabilities: [{}] }],
  ])("with %s cannot be loaded, and nothing else happens", async (_, method, response) => {
    const { load } = await serve("socket", { ...answers, [method]: { response } });
    await expect(load()).rejects.toMatchObject({ kind: "protocol", plugin: pluginName });
  });

  it("with a metric without type, an error without path, or a status that is no object fails only that call", async () => {
    const { load } = await serve("socket", {
      ...answers,
      "/cnpgi.metrics.v1.Metrics/Define": { response: { metrics: [{ fqName: "m" }] } },
      "/cnpgi.operator.v1.Operator/ValidateClusterCreate": { response: { validationErrors: [{ message: "bad" }] } },
      "/cnpgi.operator.v1.Operator/SetStatusInCluster": { response: { jsonStatus: json([1]) } },
    });
    const plugin = await load();
    await expect(plugin.metrics.define(cluster)).rejects.toMatchObject({ kind: "protocol" });
    await expect(plugin.operator.validateClusterCreate(cluster)).rejects.toThrow('"bad" names no field');
    await expect(plugin.operator.setStatusInCluster(cluster)).rejects.toThrow("not a JSON object");
    expect(await plugin.metrics.collect(cluster)).toHaveLength(1);
  });
});
