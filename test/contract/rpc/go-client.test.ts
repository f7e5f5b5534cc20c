import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { StatusError } from "../../../src/plugin/framework/status-error.ts";
import { buildGoPeer, type GoPeer, type GoProgram, startGoPeer } from "./go-peer.ts";
import { createLab, type Lab, pluginName, serverName, type Transport } from "./lab.ts";
import { cluster, pod, recordingPlugin } from "./recording-plugin.ts";

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
  await peer?.stop();
  await lab.end();
});

const json = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64");
const own = { metadata: { name: "c" }, spec: {} };

/** Method, request and answer as Go's JSON of the messages, what our handler must have seen. */
const exchanges: readonly [string, object, object][] = [
  [
    "/cnpgi.identity.v1.Identity/GetPluginMetadata",
    {},
    { name: pluginName, version: "1.2.3", displayName: "Lab", maturity: "alpha", manifest: { a: "b" } },
  ],
  ["/cnpgi.identity.v1.Identity/Probe", {}, { ready: true }],
  ["/grpc.health.v1.Health/Check", {}, { status: "SERVING" }],
  [
    "/cnpgi.operator.v1.Operator/GetCapabilities",
    {},
    {
      capabilities: [
        { rpc: { type: "TYPE_VALIDATE_CLUSTER_CREATE" } },
        { rpc: { type: "TYPE_VALIDATE_CLUSTER_CHANGE" } },
        { rpc: { type: "TYPE_MUTATE_CLUSTER" } },
        { rpc: { type: "TYPE_SET_STATUS_IN_CLUSTER" } },
        { rpc: { type: "TYPE_DEREGISTER" } },
      ],
    },
  ],
  [
    "/cnpgi.operator.v1.Operator/ValidateClusterCreate",
    { definition: json(own) },
    { validationErrors: [{ pathComponents: ["spec", "plugins", "0"], value: "v", message: "create" }] },
  ],
  [
    "/cnpgi.operator.v1.Operator/ValidateClusterChange",
    { oldCluster: json(own), newCluster: json(own) },
    { validationErrors: [{ pathComponents: ["spec"], message: "change" }] },
  ],
  [
    "/cnpgi.operator.v1.Operator/MutateCluster",
    { definition: json(own) },
    { jsonPatch: json([{ op: "add", path: "/spec/instances", value: 3 }]) },
  ],
  ["/cnpgi.operator.v1.Operator/SetStatusInCluster", { cluster: json(own) }, { jsonStatus: json({ healthy: true }) }],
  ["/cnpgi.operator.v1.Operator/Deregister", { definition: json(own) }, {}],
  [
    "/cnpgi.operator_lifecycle.v1.OperatorLifecycle/GetCapabilities",
    {},
    { lifecycleCapabilities: [{ kind: "Pod", operationTypes: [{ type: "TYPE_CREATE" }, { type: "TYPE_EVALUATE" }] }] },
  ],
  [
    "/cnpgi.operator_lifecycle.v1.OperatorLifecycle/LifecycleHook",
    { operationType: { type: "TYPE_EVALUATE" }, clusterDefinition: json(cluster), objectDefinition: json(pod) },
    { jsonPatch: json([{ op: "add", path: "/metadata/labels", value: { x: "y" } }]) },
  ],
  [
    "/cnpgi.reconciler.v1.ReconcilerHooks/GetCapabilities",
    {},
    { reconcilerCapabilities: [{ kind: "KIND_CLUSTER" }, { kind: "KIND_BACKUP" }] },
  ],
  [
    "/cnpgi.reconciler.v1.ReconcilerHooks/Pre",
    { clusterDefinition: json(cluster), resourceDefinition: json(cluster) },
    { behavior: "BEHAVIOR_REQUEUE", requeueAfter: "5" },
  ],
  [
    "/cnpgi.reconciler.v1.ReconcilerHooks/Post",
    { clusterDefinition: json(cluster), resourceDefinition: json(cluster) },
    { behavior: "BEHAVIOR_TERMINATE" },
  ],
  [
    "/cnpgi.wal.v1.WAL/GetCapabilities",
    {},
    {
      capabilities: [
        { rpc: { type: "TYPE_ARCHIVE_WAL" } },
        { rpc: { type: "TYPE_RESTORE_WAL" } },
        { rpc: { type: "TYPE_STATUS" } },
        { rpc: { type: "TYPE_SET_FIRST_REQUIRED" } },
      ],
    },
  ],
  ["/cnpgi.wal.v1.WAL/Archive", { clusterDefinition: json(own), sourceFileName: "/p/1" }, {}],
  [
    "/cnpgi.wal.v1.WAL/Restore",
    { clusterDefinition: json(own), sourceWalName: "W", destinationFileName: "/d", mode: "MODE_REWIND" },
    {},
  ],
  [
    "/cnpgi.wal.v1.WAL/Status",
    { clusterDefinition: json(own) },
    { firstWal: "A", lastWal: "B", additionalInformation: { k: "v" } },
  ],
  ["/cnpgi.wal.v1.WAL/SetFirstRequired", { clusterDefinition: json(own), firstRequiredWal: "W" }, {}],
  ["/cnpgi.backup.v1.Backup/GetCapabilities", {}, { capabilities: [{ rpc: { type: "TYPE_BACKUP" } }] }],
  [
    "/cnpgi.backup.v1.Backup/Backup",
    { clusterDefinition: json(own), backupDefinition: json(own), parameters: { p: "q" } },
    {
      backupId: "id",
      backupName: "name",
      startedAt: "1700000000",
      stoppedAt: "1700000001",
      beginWal: "1",
      endWal: "2",
      beginLsn: "0/1",
      endLsn: "0/2",
      backupLabelFile: Buffer.from("label").toString("base64"),
      instanceId: "i",
      online: true,
      metadata: { k: "v" },
    },
  ],
  ["/cnpgi.wal.v1.RestoreJobHooks/GetCapabilities", {}, { capabilities: [{ kind: "KIND_RESTORE" }] }],
  [
    "/cnpgi.wal.v1.RestoreJobHooks/Restore",
    { clusterDefinition: json(own), checkEmptyWalArchive: false },
    { restoreConfig: "x = 1\n", envs: ["A=B"] },
  ],
  [
    "/cnpgi.identity.v1.Postgres/GetCapabilities",
    {},
    { capabilities: [{ rpc: { type: "TYPE_ENRICH_CONFIGURATION" } }] },
  ],
  [
    "/cnpgi.identity.v1.Postgres/EnrichConfiguration",
    { configs: { a: "b" }, clusterDefinition: json(own), operationType: { type: "TYPE_INIT" } },
    { configs: { a: "c" } },
  ],
  ["/cnpgi.metrics.v1.Metrics/GetCapabilities", {}, { capabilities: [{ rpc: { type: "TYPE_METRICS" } }] }],
  [
    "/cnpgi.metrics.v1.Metrics/Define",
    { clusterDefinition: json(own) },
    {
      metrics: [
        { fqName: "m", help: "h", variableLabels: ["l"], constLabels: { c: "d" }, valueType: { type: "TYPE_GAUGE" } },
      ],
    },
  ],
  [
    "/cnpgi.metrics.v1.Metrics/Collect",
    { clusterDefinition: json(own) },
    { metrics: [{ fqName: "m", value: 1.5, variableLabels: ["x"] }] },
  ],
];

async function connect(transport: Transport, options: Parameters<Lab["start"]>[1]): Promise<GoPeer> {
  const { server } = await lab.start(transport, options);
  if (transport === "socket") {
    peer = startGoPeer(program, "client", { address: `unix://${server.address}` });
    return peer;
  }
  const file = (name: string) => join(lab.folder, name);
  await writeFile(file("client.key"), lab.client.key);
  peer = startGoPeer(program, "client", {
    address: server.address,
    cert: file("client.crt"),
    key: file("client.key"),
    peer: file("server.crt"),
    "server-name": serverName,
  });
  return peer;
}

describe.each<Transport>(["socket", "tls"])("a Go client of our server over %s", (transport) => {
  it("exchanges every call", async () => {
    const seen: [string, unknown][] = [];
    const client = await connect(transport, recordingPlugin(seen));
    for (const [method, request, response] of exchanges) {
      expect(await client.ask({ method, request }), method).toEqual({ method, response });
    }
    const requests = new Map(seen);
    // Old clients do not send the field: absent, not false.
    expect(requests.get("WAL.Archive")).toEqual({ cluster: own, sourceFileName: "/p/1", parameters: {} });
    expect(requests.get("RestoreJobHooks.Restore")).toEqual({ cluster: own, checkEmptyWalArchive: false });
    expect(requests.get("OperatorLifecycle.LifecycleHook")).toEqual({ operation: "evaluate", cluster, object: pod });
  });

  it("gets our statuses, and Unimplemented for what we do not serve", async () => {
    const client = await connect(transport, {
      identity: { name: pluginName, version: "1" },
      services: {
        wal: {
          archive: () => Promise.reject(new Error("boom")),
          restore: () => Promise.reject(new StatusError("NOT_FOUND", "no such segment")),
        },
      },
    });
    const request = { clusterDefinition: json(own) };
    const code = async (method: string, body: object) =>
      (await client.ask<{ code: string; message: string }>({ method, request: body })).code;
    expect(await code("/cnpgi.wal.v1.WAL/Archive", request)).toBe("Unknown");
    expect(await code("/cnpgi.wal.v1.WAL/Restore", request)).toBe("NotFound");
    expect(await code("/cnpgi.wal.v1.WAL/Archive", { clusterDefinition: "bm90IEpTT04=" })).toBe("InvalidArgument");
    expect(await code("/cnpgi.wal.v1.WAL/Status", request)).toBe("Unimplemented");
    expect(await code("/cnpgi.backup.v1.Backup/GetCapabilities", {})).toBe("Unimplemented");
  });
});
