import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { waitFor } from "../../../local/process/wait.ts";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { Role, ServiceAccount } from "../../../src/api/generated/kubernetes.ts";
import { defaultBuildContext } from "../../../src/build/context.ts";
import { buildInstancePod } from "../../../src/build/instance-pod.ts";
import { resources } from "../../../src/kube/resources.ts";
import { isKubeError, type KubeObject, type ResourceType } from "../../../src/ports/kube-api.ts";
import type { Plugin } from "../../../src/ports/plugin.ts";
import { runLifecycleHooks } from "../../../src/rpc/calls/lifecycle.ts";
import { anArchivedCluster, anObjectStore } from "../../support/barman-cloud-objects.ts";
import { startWorld, type World } from "../operator/world.ts";
import { type InstalledPlugin, installPlugin } from "./installed-plugin.ts";
import { scrape, tokenOf } from "./scrape.ts";

const namespace = "shop";
const clusterRoleBindings: ResourceType<KubeObject> = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  kind: "ClusterRoleBinding",
  plural: "clusterrolebindings",
  namespaced: false,
};
let world: World;
let installed: InstalledPlugin;
let plugin: Plugin;
let cluster: Cluster;

beforeAll(async () => {
  world = await startWorld();
  await world.api.create(resources.namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  installed = await installPlugin(world);
  plugin = await installed.load();
  cluster = await world.api.create(resources.clusters, anArchivedCluster());
}, 180_000);

afterAll(async () => {
  await installed?.stop();
  await world?.stop();
});

const pre = () => plugin.reconciler.pre({ cluster, resource: cluster });
const role = () => world.api.get(resources.roles, { namespace, name: "orders-barman-cloud" });
const stores = (it: Role) => it.rules?.find(({ resources: of }) => of?.includes("objectstores"))?.resourceNames;
const secrets = (it: Role) => it.rules?.find(({ resources: of }) => of?.includes("secrets"))?.resourceNames;

describe("the plugin beside the operator", () => {
  test("says who it is and what it offers", () => {
    expect(plugin.metadata).toMatchObject({ version: "0.14.0", displayName: "BarmanCloudInstance" });
    expect(plugin.capabilities.services).toEqual([
      "TYPE_RECONCILER_HOOKS",
      "TYPE_LIFECYCLE_SERVICE",
      "TYPE_INSTANCE_SIDECAR_INJECTION",
    ]);
    expect(plugin.capabilities.lifecycle).toEqual([
      { group: "", kind: "Pod", operations: ["create", "evaluate"] },
      { group: "batch", kind: "Job", operations: ["create"] },
    ]);
    expect(plugin.capabilities.reconciler).toEqual(["KIND_CLUSTER", "KIND_BACKUP"]);
  });

  test("tells its metrics to whom the API server allows it", async () => {
    const { metricsPort } = installed;
    const metadata = { namespace, name: "prometheus" };
    const account: ServiceAccount = { apiVersion: "v1", kind: "ServiceAccount", metadata };
    await world.api.create(resources.serviceAccounts, account);
    await world.api.create(clusterRoleBindings, {
      metadata: { name: "prometheus-reads" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "barman-plugin-metrics-reader" },
      subjects: [{ kind: "ServiceAccount", name: "prometheus", namespace }],
    } as KubeObject);
    const codeOf = async (token?: string, path?: string) => (await scrape(metricsPort, token, path)).code;
    expect([await codeOf(), await codeOf("not-a-token")]).toEqual([401, 401]);
    const stranger = await tokenOf(world, installed.namespace, "plugin-barman-cloud");
    expect(await scrape(metricsPort, stranger)).toEqual({
      code: 403,
      body: "Authorization denied for user system:serviceaccount:cnpg-system:plugin-barman-cloud\n",
    });
    const reader = await tokenOf(world, namespace, "prometheus");
    expect(await codeOf(reader, "/other")).toBe(403);
    const told = await scrape(metricsPort, reader);
    expect(told.code).toBe(200);
    for (const name of ["workqueue_depth", "controller_runtime_reconcile_total", "process_resident_memory_bytes"]) {
      expect(told.body).toContain(`# TYPE ${name} `);
    }
    expect(told.body).toContain('leader_election_master_status{name="822e3f5c.cnpg.io"}');
  });

  test("made the certificates that its Service names, and serves by them", async () => {
    const secret = await world.api.get(resources.secrets, {
      namespace: installed.namespace,
      name: "barman-cloud-server-tls",
    });
    expect(secret.type).toBe("kubernetes.io/tls");
    const served = await readFile(join(installed.tls, "server/tls.crt"), "utf8");
    expect(Buffer.from(secret.data?.["tls.crt"] ?? "", "base64").toString()).toBe(served);
    expect(await installed.health("/healthz")).toBe(200);
  });

  test("lets a Cluster wait while its ObjectStore is missing, and refuses its pods by name", async () => {
    expect(await pre()).toEqual({ behavior: "requeue", requeueAfterSeconds: 0 });
    await expect(role()).rejects.toSatisfy((error) => isKubeError(error, "notFound"));
    const pod = buildInstancePod(cluster, 1, defaultBuildContext);
    await expect(runLifecycleHooks([plugin], { operation: "evaluate", cluster, object: pod })).rejects.toMatchObject({
      kind: "refused",
      status: "FAILED_PRECONDITION",
      message: expect.stringContaining("ObjectStore shop/own does not exist"),
    });
  });

  test("gives the instances access once the store is there, and their pods the sidecar", async () => {
    await world.api.create(resources.objectStores, anObjectStore("own"));
    expect(await pre()).toMatchObject({ behavior: "continue" });
    const written = await role();
    expect([stores(written), secrets(written)]).toEqual([["own"], ["keys"]]);
    expect(written.metadata.ownerReferences?.[0]?.uid).toBe(cluster.metadata.uid);
    const binding = await world.api.get(resources.roleBindings, { namespace, name: "orders-barman-cloud" });
    expect(binding.subjects).toEqual([{ kind: "ServiceAccount", name: "orders", namespace }]);

    const before = (await role()).metadata.resourceVersion;
    await pre();
    expect((await role()).metadata.resourceVersion).toBe(before);

    const pod = buildInstancePod(cluster, 1, defaultBuildContext);
    const evaluated = await runLifecycleHooks([plugin], { operation: "evaluate", cluster, object: pod });
    const created = await runLifecycleHooks([plugin], { operation: "create", cluster, object: evaluated });
    expect(created).toEqual(evaluated);
    expect(evaluated).toMatchObject({
      spec: { initContainers: [{}, { name: "plugin-barman-cloud", image: "sidecar:test", args: ["instance"] }] },
    });
  });

  test("follows a store whose credentials move, and one that is removed", async () => {
    const key = { namespace, name: "own" };
    const body = { spec: { configuration: { s3Credentials: { accessKeyId: { name: "other" } } } } };
    await world.api.patch(resources.objectStores, key, { type: "merge", body });
    const until = (what: string, check: (it: Role) => boolean) =>
      waitFor(what, async () => check(await role()), { timeoutMs: 30_000 });
    await until("the Role names both Secrets", (it) => secrets(it)?.join() === "keys,other");
    await world.api.delete(resources.objectStores, key);
    await until("the Role names nothing", (it) => (it.rules ?? []).length === 0);
    expect(await pre()).toMatchObject({ behavior: "requeue" });
  });

  test("relabels a Role of an older release, and complains about a binding to something else", async () => {
    await world.api.create(resources.objectStores, anObjectStore("own"));
    const labels = { "barmancloud.cnpg.io/cluster": null };
    const key = { namespace, name: "orders-barman-cloud" };
    await world.api.patch(resources.roles, key, { type: "merge", body: { metadata: { labels } } });
    await pre();
    expect((await role()).metadata.labels?.["barmancloud.cnpg.io/cluster"]).toBe("orders");

    await world.api.delete(resources.roleBindings, key);
    await world.api.create(resources.roleBindings, {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { ...key },
      subjects: [],
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "another" },
    });
    await expect(pre()).rejects.toMatchObject({
      message: expect.stringMatching(/another and cannot be changed: delete it/),
    });
    await world.api.delete(resources.roleBindings, key);
    expect(await pre()).toMatchObject({ behavior: "continue" });
  });
});
