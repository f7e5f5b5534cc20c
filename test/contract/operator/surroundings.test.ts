import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cluster } from "../../../src/api/generated/cluster.ts";
import type { PodDisruptionBudget, Service } from "../../../src/api/generated/kubernetes.ts";
import { resources } from "../../../src/kube/resources.ts";
import { parseCertificates } from "../../../src/pki/certificate.ts";
import { secretText } from "../../../src/pki/inspect.ts";
import { isKubeError } from "../../../src/ports/kube-api.ts";
import { installPodMonitors } from "./pod-monitor-crd.ts";
import {
  closeStage,
  openScene,
  type RunningOperator,
  type Scene,
  startOperator,
  startWorld,
  type World,
} from "./world.ts";

const operatorNamespace = "ops";
const settings = { OPERATOR_NAMESPACE: operatorNamespace, MONITORING_QUERIES_CONFIGMAP: "queries" };
const soon = { timeout: 20_000, interval: 50 };

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  world = await startWorld();
  scene = await openScene(world);
  const { api } = world;
  const place = { namespace: operatorNamespace };
  await api.create(resources.namespaces, {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: operatorNamespace },
  });
  await api.create(resources.configMaps, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { ...place, name: "queries" },
    data: { queries: "one: {}" },
  });
  await api.create(resources.secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...place, name: "cnpg-pull-secret" },
    type: "kubernetes.io/dockerconfigjson",
    data: { ".dockerconfigjson": base64('{"auths":{}}') },
  });
  operator = startOperator(world, scene.namespace, undefined, settings);
  await scene.create("w", { instances: 1, monitoring: { enablePodMonitor: true } });
  await scene.waitHealthy("w", 1);
});

afterAll(() => closeStage({ world, scene, operator }));

function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

async function mergeIn(type: (typeof resources)["secrets" | "configMaps"], name: string, body: object): Promise<void> {
  await world.api.patch(
    type as typeof resources.secrets,
    { namespace: operatorNamespace, name },
    { type: "merge", body },
  );
}

describe("disruption budgets", () => {
  const budget = (name: string): Promise<PodDisruptionBudget | undefined> =>
    scene.find(resources.podDisruptionBudgets, name);

  /** Whether the API server lets a pod be evicted now; tells the time of the refusal, not of the controller's. */
  async function mayEvict(pod: string): Promise<boolean> {
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { namespace: scene.namespace, name: pod } };
    try {
      await world.api.create(resources.pods, eviction as never, { subresource: "eviction" });
      return true;
    } catch (error) {
      if (isKubeError(error, "unavailable")) return false;
      throw error;
    }
  }

  it("protect the primary of a single instance, and nobody when they are switched off", async () => {
    expect(await budget("w-primary")).toMatchObject({
      spec: {
        minAvailable: 1,
        selector: { matchLabels: { "cnpg.io/cluster": "w", "cnpg.io/instanceRole": "primary" } },
      },
    });
    expect(await budget("w")).toBeUndefined();
    expect(await mayEvict("w-1")).toBe(false);
    await scene.patchSpec("w", { enablePDB: false });
    await expect.poll(() => budget("w-primary"), soon).toBeUndefined();
    const pod = await scene.find(resources.pods, "w-1");
    expect(await mayEvict("w-1")).toBe(true);
    await expect
      .poll(async () => (await scene.find(resources.pods, "w-1"))?.metadata.uid ?? pod?.metadata.uid, soon)
      .not.toBe(pod?.metadata.uid);
    await scene.patchSpec("w", { enablePDB: true });
    await expect.poll(() => budget("w-primary"), soon).toBeDefined();
    await scene.waitHealthy("w", 1);
  });

  it("let a single instance go during maintenance that waits for its volumes", async () => {
    await scene.patchSpec("w", { nodeMaintenanceWindow: { inProgress: true, reusePVC: true } });
    await expect.poll(() => budget("w-primary"), soon).toBeUndefined();
    await scene.patchSpec("w", { nodeMaintenanceWindow: { inProgress: true, reusePVC: false } });
    await expect.poll(() => budget("w-primary"), soon).toBeDefined();
    await scene.patchSpec("w", { nodeMaintenanceWindow: null });
  });

  it("follow the number of instances, and one of somebody else's stays as it is", async () => {
    const spec = { minAvailable: 7, selector: { matchLabels: { app: "other" } } };
    await world.api.create(resources.podDisruptionBudgets, {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { namespace: scene.namespace, name: "b-primary", labels: { "cnpg.io/cluster": "b" } },
      spec,
    });
    await scene.create("b");
    await scene.waitHealthy("b", 3);
    expect((await budget("b"))?.spec).toMatchObject({ minAvailable: 1 });
    expect((await budget("b-primary"))?.spec).toEqual(spec);
    await scene.patchSpec("b", { instances: 2 });
    await expect.poll(() => budget("b"), soon).toBeUndefined();
    expect((await budget("b-primary"))?.spec).toEqual(spec);
  });
});

describe("monitoring", () => {
  const monitor = () => scene.find(resources.podMonitors, "w");

  it("gets a scrape target once its definition is installed, which follows the cluster and goes with the wish", async () => {
    await installPodMonitors(world);
    await expect
      .poll(
        async () => {
          await scene.annotate("w", { "cnpg.io/reloadedAt": String(Date.now()) });
          return monitor();
        },
        { timeout: 60_000, interval: 1_000 },
      )
      .toMatchObject({
        spec: {
          selector: { matchLabels: { "cnpg.io/cluster": "w", "cnpg.io/podRole": "instance" } },
          podMetricsEndpoints: [{ port: "metrics" }],
        },
      });
    const rules = [{ sourceLabels: ["a"], targetLabel: "b" }];
    await scene.patchSpec("w", { monitoring: { podMonitorRelabelings: rules, tls: { enabled: true } } });
    const secured = { port: "metrics", scheme: "https", tlsConfig: { serverName: "w-rw" }, relabelings: rules };
    await expect.poll(monitor, soon).toMatchObject({ spec: { podMetricsEndpoints: [secured] } });
    await scene.waitHealthy("w", 1);
    const version = (await monitor())?.metadata.resourceVersion;
    await scene.annotate("w", { "cnpg.io/reloadedAt": "again" });
    await scene.patchSpec("w", { monitoring: { tls: { enabled: false } } });
    await expect.poll(async () => (await monitor())?.spec, soon).not.toHaveProperty("podMetricsEndpoints.0.scheme");
    expect(Number((await monitor())?.metadata.resourceVersion)).toBeGreaterThan(Number(version));
    await scene.patchSpec("w", { monitoring: { enablePodMonitor: false } });
    await expect.poll(monitor, soon).toBeUndefined();
  });

  it("has the operator's default queries at hand, as they are by now, until a person takes the copy over", async () => {
    const copy = () => scene.find(resources.configMaps, "cnpg-default-monitoring");
    expect(await copy()).toMatchObject({ data: { queries: "one: {}" } });
    expect((await copy())?.metadata.labels?.["cnpg.io/reload"]).toBe("true");
    await mergeIn(resources.configMaps, "queries", { data: { queries: "two: {}" } });
    await expect.poll(async () => (await copy())?.data?.["queries"], soon).toBe("two: {}");
    const key = { namespace: scene.namespace, name: "cnpg-default-monitoring" };
    const body = { metadata: { annotations: { "cnpg.io/operatorVersion": null } }, data: { queries: "mine: {}" } };
    await world.api.patch(resources.configMaps, key, { type: "merge", body });
    await mergeIn(resources.configMaps, "queries", { data: { queries: "three: {}" } });
    await mergeIn(resources.secrets, "cnpg-pull-secret", {
      data: { ".dockerconfigjson": base64('{"auths":{"a":{}}}') },
    });
    await expect.poll(pullText, soon).toBe('{"auths":{"a":{}}}');
    expect((await copy())?.data?.["queries"]).toBe("mine: {}");
  });
});

async function pullText(): Promise<string | undefined> {
  const secret = await scene.find(resources.secrets, "w-pull");
  return secret && secretText(secret, ".dockerconfigjson");
}

describe("the account of the instances", () => {
  it("pulls images with a copy of the operator's Secret and with the cluster's own", async () => {
    expect(await scene.find(resources.secrets, "w-pull")).toMatchObject({ type: "kubernetes.io/dockerconfigjson" });
    const account = () => scene.find(resources.serviceAccounts, "w");
    expect((await account())?.imagePullSecrets).toEqual([{ name: "w-pull" }]);
    await scene.patchSpec("w", { imagePullSecrets: [{ name: "mine" }] });
    await expect
      .poll(async () => (await account())?.imagePullSecrets, soon)
      .toEqual([{ name: "w-pull" }, { name: "mine" }]);
    await scene.patchSpec("w", { imagePullSecrets: [] });
    await expect.poll(async () => (await account())?.imagePullSecrets, soon).toEqual([{ name: "w-pull" }]);
  });

  it("that belongs to somebody else is neither changed nor replaced, and the cluster says so", async () => {
    for (const type of [resources.serviceAccounts, resources.roles] as const) {
      await world.api.create(
        type as typeof resources.serviceAccounts,
        {
          apiVersion: type.group ? `${type.group}/v1` : "v1",
          kind: type.kind,
          metadata: { namespace: scene.namespace, name: "foreign", labels: { mine: "yes" } },
        } as never,
      );
    }
    await scene.create("foreign", { instances: 1 });
    const cluster = await scene.waitStatus("foreign", "the phase", (it) => (it.phase ?? "").startsWith("Unable"));
    expect(cluster.status?.phaseReason).toContain("foreign");
    expect((await scene.find(resources.roles, "foreign"))?.metadata.labels).toEqual({ mine: "yes" });
    // One trouble hides none of the rest.
    for (const type of [resources.services, resources.leases, resources.podDisruptionBudgets] as const) {
      const name = { Service: "foreign-rw", Lease: "foreign", PodDisruptionBudget: "foreign-primary" }[type.kind] ?? "";
      expect(await scene.find(type as typeof resources.services, name), name).toBeDefined();
    }
    for (const type of [resources.serviceAccounts, resources.roles] as const) {
      await world.api.delete(type as typeof resources.roles, { namespace: scene.namespace, name: "foreign" });
    }
    await scene.annotate("foreign", { "cnpg.io/reloadedAt": "now" });
    await scene.waitHealthy("foreign", 1);
  });
});

describe("managed Services", () => {
  type Managed = NonNullable<NonNullable<Cluster["spec"]["managed"]>["services"]>;
  const service = (name: string): Promise<Service | undefined> => scene.find(resources.services, name);
  const additional = (type: "LoadBalancer" | "ClusterIP", updateStrategy: "patch" | "replace"): Managed => ({
    additional: [
      {
        selectorType: "rw",
        updateStrategy,
        serviceTemplate: { metadata: { name: "w-extra", labels: { team: "a" } }, spec: { type } },
      },
    ],
  });

  it("are made as described, and named in the server's certificate", async () => {
    await scene.patchSpec("w", { managed: { services: additional("LoadBalancer", "patch") } });
    await expect
      .poll(() => service("w-extra"), soon)
      .toMatchObject({
        metadata: { labels: { team: "a", "cnpg.io/isManaged": "true", "cnpg.io/cluster": "w" } },
        spec: {
          type: "LoadBalancer",
          selector: { "cnpg.io/cluster": "w", "cnpg.io/instanceRole": "primary" },
          ports: [{ name: "postgres", port: 5432, nodePort: expect.any(Number) }],
        },
      });
    await expect
      .poll(async () => {
        const secret = await scene.find(resources.secrets, "w-server");
        return parseCertificates((secret && secretText(secret, "tls.crt")) ?? "", "tls.crt")[0].subjectAltName;
      }, soon)
      .toContain(`DNS:w-extra.${scene.namespace}.svc`);
  });

  it("that are patched keep what others added, and become another type in place", async () => {
    const before = await service("w-extra");
    const key = { namespace: scene.namespace, name: "w-extra" };
    const body = {
      metadata: { labels: { theirs: "yes" } },
      spec: { healthCheckNodePort: 0, sessionAffinity: "ClientIP" },
    };
    await world.api.patch(resources.services, key, { type: "merge", body });
    await scene.patchSpec("w", { managed: { services: additional("ClusterIP", "patch") } });
    await expect.poll(async () => (await service("w-extra"))?.spec?.type, soon).toBe("ClusterIP");
    const after = await service("w-extra");
    expect(after?.metadata.uid).toBe(before?.metadata.uid);
    expect(after?.metadata.labels).toMatchObject({ theirs: "yes" });
    expect(after?.spec).toMatchObject({ sessionAffinity: "ClientIP", clusterIP: before?.spec?.clusterIP });
  });

  it("that are replaced come as new objects, also for an annotation", async () => {
    const before = await service("w-extra");
    await scene.patchSpec("w", { managed: { services: additional("ClusterIP", "replace") } });
    await expect
      .poll(async () => (await service("w-extra"))?.metadata.annotations?.["cnpg.io/updateStrategy"], soon)
      .toBe("replace");
    const replaced = await service("w-extra");
    expect(replaced?.metadata.uid).not.toBe(before?.metadata.uid);
    await scene.patchSpec("w", { managed: { services: additional("LoadBalancer", "replace") } });
    await expect.poll(async () => (await service("w-extra"))?.spec?.type, soon).toBe("LoadBalancer");
    expect((await service("w-extra"))?.metadata.uid).not.toBe(replaced?.metadata.uid);
  });

  it("that the API server will not take are told in its words", async () => {
    const template = { metadata: { name: "w-odd" }, spec: { type: "NodePort", ports: [{ port: 5432, nodePort: 1 }] } };
    const odd = { selectorType: "rw", serviceTemplate: template };
    await scene.patchSpec("w", { managed: { services: { additional: [odd] } } });
    const cluster = await scene.waitStatus("w", "the phase", (it) => (it.phase ?? "").startsWith("Unable to create"));
    expect(cluster.status?.phaseReason).toContain("w-odd");
    expect(cluster.status?.phaseReason).toContain("not in the valid range");
    await scene.patchSpec("w", { managed: { services: additional("LoadBalancer", "replace") } });
    await scene.waitHealthy("w", 1);
  });

  it("that are no longer described go, default ones when they are disabled, and come back", async () => {
    await scene.patchSpec("w", { managed: { services: { additional: null, disabledDefaultServices: ["ro", "r"] } } });
    for (const name of ["w-extra", "w-ro", "w-r"]) await expect.poll(() => service(name), soon).toBeUndefined();
    expect(await service("w-rw")).toBeDefined();
    await scene.patchSpec("w", { managed: null });
    await expect.poll(() => service("w-ro"), soon).toBeDefined();
    await scene.waitHealthy("w", 1);
  });
});

describe("a cluster that is deleted while no operator runs", () => {
  const kinds = [
    [resources.databases, "cnpg.io/deleteDatabase", { name: "app", owner: "app" }],
    [resources.databaseRoles, "cnpg.io/deleteRole", { name: "writer" }],
    [resources.publications, "cnpg.io/deletePublication", { dbname: "app", name: "p", target: { allTables: true } }],
    [
      resources.subscriptions,
      "cnpg.io/deleteSubscription",
      { dbname: "app", name: "s", externalClusterName: "o", publicationName: "p" },
    ],
  ] as const;

  /** One object of each kind for a cluster, as an instance leaves it. */
  async function declare(cluster: string, held: boolean): Promise<void> {
    for (const [type, finalizer, spec] of kinds) {
      await world.api.create(
        type as typeof resources.databases,
        {
          apiVersion: "postgresql.cnpg.io/v1",
          kind: type.kind,
          metadata: {
            namespace: scene.namespace,
            name: `of-${cluster}`,
            finalizers: ["example.org/mine", ...(held ? [finalizer] : [])],
          },
          spec: { cluster: { name: cluster }, ...spec },
        } as never,
      );
    }
  }

  function declared(cluster: string): Promise<{ finalizers: string[]; status: unknown }[]> {
    return Promise.all(
      kinds.map(async ([type]) => {
        const { metadata, status } = await world.api.get(type as typeof resources.databases, {
          namespace: scene.namespace,
          name: `of-${cluster}`,
        });
        return { finalizers: metadata.finalizers ?? [], status };
      }),
    );
  }

  it("lets go of what names it once one runs again, and of nothing else", async () => {
    await declare("b", true);
    await declare("w", true);
    await declare("to-come", false);
    await operator.stop();
    await world.api.delete(resources.clusters, { namespace: scene.namespace, name: "b" });
    operator = startOperator(world, scene.namespace, undefined, settings);
    const status = {
      applied: false,
      message: "cluster resource has been deleted, skipping reconciliation",
      observedGeneration: 0,
    };
    await expect
      .poll(() => declared("b"), soon)
      .toEqual(kinds.map(() => ({ finalizers: ["example.org/mine"], status })));
    const kept = kinds.map(([, finalizer]) => ({ finalizers: ["example.org/mine", finalizer], status: undefined }));
    expect(await declared("w")).toEqual(kept);
    expect(await declared("to-come")).toEqual(
      kinds.map(() => ({ finalizers: ["example.org/mine"], status: undefined })),
    );
  });

  it("takes the copy of the default queries along when it was the last that used them, but not a person's own", async () => {
    const key = { namespace: scene.namespace, name: "cnpg-default-monitoring" };
    const metadata = { annotations: { "cnpg.io/operatorVersion": "1.30.0" } };
    await world.api.patch(resources.configMaps, key, { type: "merge", body: { metadata } });
    await operator.stop();
    for (const name of ["w", "foreign"]) {
      await world.api.delete(resources.clusters, { namespace: scene.namespace, name });
    }
    operator = startOperator(world, scene.namespace, undefined, settings);
    await expect.poll(() => scene.find(resources.configMaps, key.name), soon).toBeUndefined();
    expect(await world.api.get(resources.configMaps, { namespace: operatorNamespace, name: "queries" })).toBeDefined();
    await expect
      .poll(async () => (await declared("w")).flatMap((it) => it.finalizers), soon)
      .toEqual(kinds.map(() => "example.org/mine"));
  });
});
