import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encodeData } from "../../../src/build/credentials.ts";
import { resources } from "../../../src/kube/resources.ts";
import { secretText } from "../../../src/pki/inspect.ts";
import type { KubeObject, ResourceType } from "../../../src/ports/kube-api.ts";
import {
  closeStage,
  endedPasses,
  openScene,
  openStage,
  type RunningOperator,
  type Scene,
  startOperator,
  type World,
} from "./world.ts";

const soon = { timeout: 20_000, interval: 50 };

let world: World;
let scene: Scene;
let operator: RunningOperator;

beforeAll(async () => {
  ({ world, scene, operator } = await openStage());
});

afterAll(() => closeStage({ world, scene, operator }));

async function aSecret(name: string, texts: Record<string, string>) {
  const metadata = { namespace: scene.namespace, name };
  return world.api.create(resources.secrets, { apiVersion: "v1", kind: "Secret", metadata, data: encodeData(texts) });
}

async function changeSecret(name: string, texts: Record<string, string>) {
  const body = { data: encodeData(texts) };
  return world.api.patch(resources.secrets, { namespace: scene.namespace, name }, { type: "merge", body });
}

async function podUids(cluster: string): Promise<unknown[]> {
  const labelSelector = `cnpg.io/cluster=${cluster}`;
  const pods = await world.api.list(resources.pods, { namespace: scene.namespace, labelSelector });
  return pods.map((it) => it.metadata.uid);
}

async function eventsOf(cluster: string): Promise<string[]> {
  const events = await scene.events();
  return events.filter((it) => it.involvedObject.name === cluster).map((it) => `${it.reason}: ${it.message}`);
}

describe("an account that the user names", () => {
  it("is waited for, used, and left as it is", async () => {
    await scene.create("a", { instances: 1, serviceAccountName: "mine" });
    const message = `Specified ServiceAccount "mine" not found in namespace "${scene.namespace}"`;
    await scene.waitStatus("a", "the phase", (it) => it.phaseReason === message);
    await expect.poll(() => eventsOf("a"), soon).toContain(`ServiceAccountNotFound: ${message}`);
    const metadata = { namespace: scene.namespace, name: "mine" };
    const account = { apiVersion: "v1" as const, kind: "ServiceAccount" as const, metadata };
    const made = await world.api.create(resources.serviceAccounts, account);
    await scene.annotate("a", { "cnpg.io/reloadedAt": "now" });
    await scene.waitHealthy("a", 1);
    expect((await scene.find(resources.pods, "a-1"))?.spec?.serviceAccountName).toBe("mine");
    expect((await scene.find(resources.roleBindings, "a"))?.subjects).toEqual([
      { kind: "ServiceAccount", name: "mine", namespace: scene.namespace },
    ]);
    expect(await scene.find(resources.serviceAccounts, "a")).toBeUndefined();
    const now = await scene.find(resources.serviceAccounts, "mine");
    expect(now?.metadata.resourceVersion).toBe(made.metadata.resourceVersion);
  });
});

describe("credentials", () => {
  it("of the superuser come and go with the access, and the user's own stay", async () => {
    await scene.patchSpec("a", { enableSuperuserAccess: true });
    await expect.poll(() => scene.find(resources.secrets, "a-superuser"), soon).toBeDefined();
    const secret = await scene.find(resources.secrets, "a-superuser");
    expect(secret).toMatchObject({ type: "kubernetes.io/basic-auth" });
    expect(secret && secretText(secret, "username")).toBe("postgres");
    expect(secret && secretText(secret, "password")).toMatch(/^[A-Za-z0-9]{64}$/);
    await scene.waitStatus("a", "its version", (it) => {
      return it.secretsResourceVersion?.superuserSecretVersion === secret?.metadata.resourceVersion;
    });
    await scene.patchSpec("a", { enableSuperuserAccess: false });
    await expect.poll(() => scene.find(resources.secrets, "a-superuser"), soon).toBeUndefined();
    const own = await aSecret("own-superuser", { username: "postgres", password: "p" });
    await scene.patchSpec("a", { enableSuperuserAccess: true, superuserSecret: { name: "own-superuser" } });
    await scene.waitStatus("a", "the version of the user's", (it) => {
      return it.secretsResourceVersion?.superuserSecretVersion === own.metadata.resourceVersion;
    });
    await scene.patchSpec("a", { enableSuperuserAccess: false, superuserSecret: null });
    await scene.waitHealthy("a", 1);
    expect(await scene.find(resources.secrets, "own-superuser")).toBeDefined();
    expect(await scene.find(resources.secrets, "a-superuser")).toBeUndefined();
  });

  it("that are deleted come back with a new password", async () => {
    const before = await scene.find(resources.secrets, "a-app");
    await world.api.delete(resources.secrets, { namespace: scene.namespace, name: "a-app" });
    await expect.poll(() => scene.find(resources.secrets, "a-app"), soon).toBeDefined();
    const after = await scene.find(resources.secrets, "a-app");
    expect(after?.data?.["password"]).not.toBe(before?.data?.["password"]);
    expect(after && secretText(after, "dbname")).toBe("app");
  });
});

describe("Secrets and ConfigMaps that a cluster names", () => {
  it("reach the instances by their versions, without a restart, and are all that the role lets them read", async () => {
    const place = { namespace: scene.namespace, labels: { "cnpg.io/reload": "" } };
    await world.api.create(resources.configMaps, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { ...place, name: "my-queries" },
      data: { queries: "one: {}" },
    });
    await aSecret("role-password", { username: "r", password: "one" });
    await aSecret("origin-password", { password: "one" });
    await scene.patchSpec("a", {
      monitoring: { customQueriesConfigMap: [{ name: "my-queries", key: "queries" }] },
      managed: { roles: [{ name: "r", passwordSecret: { name: "role-password" } }] },
      externalClusters: [
        { name: "o", connectionParameters: { host: "o" }, password: { name: "origin-password", key: "password" } },
      ],
    });
    const seen = async () => {
      const { secretsResourceVersion: secrets, configMapResourceVersion: maps } =
        (await scene.cluster("a")).status ?? {};
      return {
        queries: maps?.metrics?.["my-queries"],
        role: secrets?.managedRoleSecretVersion?.["role-password"],
        origin: secrets?.externalClusterSecretVersion?.["origin-password"],
      };
    };
    const versions = async () => ({
      queries: (await scene.find(resources.configMaps, "my-queries"))?.metadata.resourceVersion,
      role: (await scene.find(resources.secrets, "role-password"))?.metadata.resourceVersion,
      origin: (await scene.find(resources.secrets, "origin-password"))?.metadata.resourceVersion,
    });
    await expect.poll(seen, soon).toEqual(await versions());
    await scene.waitHealthy("a", 1);
    const pods = await podUids("a");
    const body = { data: { queries: "two: {}" } };
    await world.api.patch(resources.configMaps, { ...place, name: "my-queries" }, { type: "merge", body });
    await changeSecret("role-password", { password: "two" });
    await changeSecret("origin-password", { password: "two" });
    await expect.poll(seen, soon).toEqual(await versions());
    await scene.waitHealthy("a", 1);
    expect(await podUids("a")).toEqual(pods);
    const readable = (await scene.find(resources.roles, "a"))?.rules?.filter((it) => it.resources?.[0] === "secrets");
    expect(readable?.map((it) => it.resourceNames)).toEqual([
      ["a-app", "a-ca", "a-replication", "a-server", "a-superuser", "origin-password", "role-password"],
    ]);
  });
});

describe("pods that a cluster selects for its host rules", () => {
  it("are known by their addresses, and forgotten when they go", async () => {
    const metadata = { namespace: scene.namespace, name: "client", labels: { app: "client" } };
    const spec = { containers: [{ name: "c", image: "example.org/client" }] };
    const pod = { apiVersion: "v1" as const, kind: "Pod" as const, metadata, spec };
    await world.api.create(resources.pods, pod);
    const status = { podIP: "10.9.8.7", podIPs: [{ ip: "10.9.8.7" }] };
    const key = { namespace: scene.namespace, name: "client" };
    await world.api.patch(resources.pods, key, { type: "merge", body: { status } }, { subresource: "status" });
    const selector = { matchLabels: { app: "client" } };
    await scene.patchSpec("a", { podSelectorRefs: [{ name: "clients", selector }] });
    const refs = async () => (await scene.cluster("a")).status?.podSelectorRefs;
    await expect.poll(refs, soon).toEqual([{ name: "clients", ips: ["10.9.8.7"] }]);
    // Nothing else happens to the cluster: a change of the pod itself is what wakes the operator.
    const other = { podIPs: [{ ip: "10.9.8.6" }], podIP: "10.9.8.6" };
    await world.api.patch(resources.pods, key, { type: "merge", body: { status: other } }, { subresource: "status" });
    await expect.poll(refs, soon).toEqual([{ name: "clients", ips: ["10.9.8.6"] }]);
    const relabel = (app: string) =>
      world.api.patch(resources.pods, key, { type: "merge", body: { metadata: { labels: { app } } } });
    await relabel("other");
    await expect.poll(refs, soon).toEqual([{ name: "clients" }]);
    await relabel("client");
    await expect.poll(refs, soon).toEqual([{ name: "clients", ips: ["10.9.8.6"] }]);
    await world.api.delete(resources.pods, key, { gracePeriodSeconds: 0 });
    await expect.poll(refs, soon).toEqual([{ name: "clients" }]);
    await scene.patchSpec("a", { podSelectorRefs: [] });
  });
});

describe("a Job that fails for good", () => {
  it("is named in the phase, and a new one does the work once the user has removed it", async () => {
    const name = "j-1-initdb";
    scene.node.holdJobs.add(name);
    await scene.create("j", { instances: 1 });
    await expect.poll(() => scene.find(resources.jobs, name), soon).toBeDefined();
    const at = `${new Date().toISOString().slice(0, 19)}Z`;
    const condition = (type: string) => ({ type, status: "True", lastProbeTime: at, lastTransitionTime: at });
    const status = { startTime: at, failed: 7, conditions: [condition("FailureTarget"), condition("Failed")] };
    const key = { namespace: scene.namespace, name };
    await world.api.patch(resources.jobs, key, { type: "merge", body: { status } }, { subresource: "status" });
    const failed = await scene.waitStatus("j", "the phase", (it) =>
      (it.phase ?? "").startsWith("Cluster is unrecoverable"),
    );
    expect(failed.status?.phaseReason).toBe(
      `Instance creation failed for the following jobs: ${name}. Check the job logs to investigate the cause of the failure.`,
    );
    scene.node.holdJobs.delete(name);
    await world.api.delete(resources.jobs, key, { propagation: "Background" });
    await scene.waitHealthy("j", 1);
  });
});

describe("a quota", () => {
  const quotas: ResourceType<KubeObject & { status?: object }> = {
    group: "",
    version: "v1",
    kind: "ResourceQuota",
    plural: "resourcequotas",
    namespaced: true,
  };

  it("that leaves no room is told in the API server's words, and waited for", async () => {
    const hard = { persistentvolumeclaims: "0" };
    const metadata = { namespace: scene.namespace, name: "none" };
    await world.api.create(quotas, { apiVersion: "v1", kind: "ResourceQuota", metadata, spec: { hard } } as KubeObject);
    const body = { status: { hard, used: { persistentvolumeclaims: "0" } } };
    await world.api.patch(quotas, metadata, { type: "merge", body }, { subresource: "status" });
    await scene.create("q", { instances: 1 });
    const cluster = await scene.waitStatus("q", "the phase", (it) => (it.phaseReason ?? "").includes("exceeded quota"));
    expect(cluster.status?.phase).toBe("Unable to create required cluster objects");
    await expect.poll(async () => (await eventsOf("q")).join(), soon).toContain("ObjectRefused");
    await world.api.delete(quotas, metadata);
    await scene.waitHealthy("q", 1);
  });
});

describe("an operator for several namespaces", () => {
  it("serves each that it was given, and no other", async () => {
    const [one, two, other] = [await openScene(world), await openScene(world), await openScene(world)];
    const both = startOperator(world, `${one.namespace}, ${two.namespace}`);
    try {
      await Promise.all([one, two, other].map((it) => it.create("s", { instances: 1 })));
      await Promise.all([one, two].map((it) => it.waitHealthy("s", 1)));
      expect((await other.cluster("s")).status).toBeUndefined();
      expect(endedPasses(both, "s").length).toBeGreaterThan(1);
    } finally {
      await both.stop();
      await Promise.all([one, two, other].map((it) => it.stop()));
    }
  });
});
