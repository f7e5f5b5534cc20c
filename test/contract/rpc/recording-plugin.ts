import type { PluginServerOptions } from "../../../src/plugin/framework/create-plugin-server.ts";
import type { Plugin } from "../../../src/ports/plugin.ts";
import { pluginName } from "./lab.ts";

export const cluster = {
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "Cluster",
  metadata: { name: "c", namespace: "ns", uid: "u", managedFields: [{ manager: "kubectl" }] },
  spec: { instances: 1, plugins: [{ name: pluginName, parameters: { a: "b" } }] },
};
export const backup = { apiVersion: "postgresql.cnpg.io/v1", kind: "Backup", metadata: { name: "b" }, spec: {} };
export const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "c-1" }, spec: { containers: [] } };

/** What a server is to see of `cluster`. */
export const seenCluster = { ...cluster, metadata: { name: "c", namespace: "ns", uid: "u" } };

const done = 1_700_000_000_000;

/** A plugin with every service; `seen` gets each call and its request. */
export function recordingPlugin(seen: [string, unknown][]): Omit<PluginServerOptions, "listen" | "logger"> {
  const note =
    <T>(answer: T) =>
    (request: unknown, { label }: { label: string }): T => {
      seen.push([label, request]);
      return answer;
    };
  return {
    identity: {
      name: pluginName,
      version: "1.2.3",
      displayName: "Lab",
      manifest: { a: "b" },
      injectsInstanceSidecar: true,
      injectsJobSidecar: true,
    },
    services: {
      operator: {
        validateClusterCreate: note([{ path: ["spec", "plugins", "0"], value: "v", message: "create" }]),
        validateClusterChange: note([{ path: ["spec"], value: "", message: "change" }]),
        mutateCluster: note([{ op: "add" as const, path: "/spec/instances", value: 3 }]),
        setStatusInCluster: note({ healthy: true }),
        deregister: note(undefined),
      },
      lifecycle: {
        capabilities: [{ group: "", kind: "Pod", operations: ["create", "evaluate"] }],
        hook: note([{ op: "add" as const, path: "/metadata/labels", value: { x: "y" } }]),
      },
      reconciler: {
        kinds: ["Cluster", "Backup"],
        pre: note({ behavior: "requeue" as const, requeueAfterSeconds: 5 }),
        post: note({ behavior: "terminate" as const }),
      },
      wal: {
        archive: note(undefined),
        restore: note(undefined),
        status: note({ firstWal: "A", lastWal: "B", additionalInformation: { k: "v" } }),
        setFirstRequired: note(undefined),
      },
      backup: {
        backup: note({
          backupId: "id",
          backupName: "name",
          startedAt: done,
          stoppedAt: done + 1000,
          beginWal: "1",
          endWal: "2",
          beginLsn: "0/1",
          endLsn: "0/2",
          backupLabelFile: Buffer.from("label"),
          tablespaceMapFile: new Uint8Array(),
          instanceId: "i",
          online: true,
          metadata: { k: "v" },
        }),
      },
      restoreJob: { restore: note({ restoreConfig: "x = 1\n", envs: ["A=B"] }) },
      postgres: { enrichConfiguration: note({ a: "c" }) },
      metrics: {
        define: note([
          { name: "m", help: "h", variableLabels: ["l"], constLabels: { c: "d" }, type: "gauge" as const },
        ]),
        collect: note([{ name: "m", value: 1.5, variableLabels: ["x"] }]),
      },
    },
  };
}

/** One call of each kind: name, how it is made, what the server must see, what the client must get. */
export const everyCall: readonly [string, (plugin: Plugin) => Promise<unknown>, unknown, unknown][] = [
  [
    "Operator.ValidateClusterCreate",
    (plugin) => plugin.operator.validateClusterCreate(cluster),
    seenCluster,
    [{ path: ["spec", "plugins", "0"], value: "v", message: "create" }],
  ],
  [
    "Operator.ValidateClusterChange",
    (plugin) => plugin.operator.validateClusterChange({ before: cluster, after: cluster }),
    { before: seenCluster, after: seenCluster },
    [{ path: ["spec"], value: "", message: "change" }],
  ],
  [
    "Operator.MutateCluster",
    async (plugin) => Buffer.from(await plugin.operator.mutateCluster(cluster)).toString(),
    seenCluster,
    '[{"op":"add","path":"/spec/instances","value":3}]',
  ],
  [
    "Operator.SetStatusInCluster",
    (plugin) => plugin.operator.setStatusInCluster(cluster),
    seenCluster,
    '{"healthy":true}',
  ],
  ["Operator.Deregister", (plugin) => plugin.operator.deregister(cluster), seenCluster, undefined],
  [
    "OperatorLifecycle.LifecycleHook",
    async (plugin) => {
      const patch = await plugin.lifecycle.hook({ operation: "evaluate", cluster, object: pod });
      return Buffer.from(patch).toString();
    },
    { operation: "evaluate", cluster: seenCluster, object: pod },
    '[{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]',
  ],
  [
    "ReconcilerHooks.Pre",
    (plugin) => plugin.reconciler.pre({ cluster, resource: backup }),
    { cluster: seenCluster, resource: backup },
    { behavior: "requeue", requeueAfterSeconds: 5 },
  ],
  [
    "ReconcilerHooks.Post",
    (plugin) => plugin.reconciler.post({ cluster, resource: cluster }),
    { cluster: seenCluster, resource: seenCluster },
    { behavior: "terminate", requeueAfterSeconds: 0 },
  ],
  [
    "WAL.Archive",
    (plugin) => plugin.wal.archive({ cluster, sourceFileName: "/p/1", checkEmptyWalArchive: false }),
    { cluster: seenCluster, sourceFileName: "/p/1", parameters: {}, checkEmptyWalArchive: false },
    undefined,
  ],
  [
    "WAL.Restore",
    (plugin) => plugin.wal.restore({ cluster, sourceWalName: "W", destinationFileName: "/d", mode: "rewind" }),
    { cluster: seenCluster, sourceWalName: "W", destinationFileName: "/d", parameters: {}, mode: "rewind" },
    undefined,
  ],
  [
    "WAL.Status",
    (plugin) => plugin.wal.status(cluster),
    seenCluster,
    { firstWal: "A", lastWal: "B", additionalInformation: { k: "v" } },
  ],
  [
    "WAL.SetFirstRequired",
    (plugin) => plugin.wal.setFirstRequired({ cluster, firstRequiredWal: "W" }),
    { cluster: seenCluster, firstRequiredWal: "W" },
    undefined,
  ],
  [
    "Backup.Backup",
    async (plugin) => {
      const result = await plugin.backup.backup({ cluster, backup, parameters: { p: "q" } });
      return { ...result, backupLabelFile: Buffer.from(result.backupLabelFile).toString() };
    },
    { cluster: seenCluster, backup, parameters: { p: "q" } },
    expectedBackup(),
  ],
  [
    "RestoreJobHooks.Restore",
    (plugin) => plugin.restoreJob.restore({ cluster, checkEmptyWalArchive: true }),
    { cluster: seenCluster, checkEmptyWalArchive: true },
    { restoreConfig: "x = 1\n", envs: ["A=B"] },
  ],
  [
    "Postgres.EnrichConfiguration",
    (plugin) => plugin.postgres.enrichConfiguration({ cluster, configs: { a: "b" }, operation: "upgrade" }),
    { cluster: seenCluster, configs: { a: "b" }, operation: "upgrade" },
    { a: "c" },
  ],
  [
    "Metrics.Define",
    (plugin) => plugin.metrics.define(cluster),
    seenCluster,
    [{ name: "m", help: "h", variableLabels: ["l"], constLabels: { c: "d" }, type: "gauge" }],
  ],
  [
    "Metrics.Collect",
    (plugin) => plugin.metrics.collect(cluster),
    seenCluster,
    [{ name: "m", value: 1.5, variableLabels: ["x"] }],
  ],
];

function expectedBackup() {
  return {
    backupId: "id",
    backupName: "name",
    startedAt: done,
    stoppedAt: done + 1000,
    beginWal: "1",
    endWal: "2",
    beginLsn: "0/1",
    endLsn: "0/2",
    backupLabelFile: "label",
    tablespaceMapFile: new Uint8Array(),
    instanceId: "i",
    online: true,
    metadata: { k: "v" },
  };
}
